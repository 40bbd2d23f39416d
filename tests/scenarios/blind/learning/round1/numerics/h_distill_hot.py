"""Knowledge distillation: a small student learns the soft answers of a teacher at a high temperature."""
from common import *


class Distiller(keras.Model):
    def __init__(self, student, teacher, temperature=12.0):
        super().__init__()
        self.student, self.teacher, self.temperature = student, teacher, temperature
        self.teacher.trainable = False
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.acc = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    @property
    def metrics(self):
        return [self.loss_tracker, self.acc]

    def call(self, x, training=False):
        return self.student(x, training=training)

    def soft_loss(self, x, logits):
        soft = tf.nn.softmax(self.teacher(x, training=False) / self.temperature)
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(soft, logits / self.temperature))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self.student(x, training=True)
            loss = self.soft_loss(x, logits)
        variables = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.loss_tracker.update_state(loss)
        self.acc.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        logits = self.student(x, training=False)
        self.loss_tracker.update_state(self.soft_loss(x, logits))
        self.acc.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}


def main(log):
    x, y = load("digits")
    x, y = (x / 16.0).astype("float32"), y.astype("int32")
    teacher = keras.Sequential([keras.Input((64,)), L.Dense(128, activation="relu"), L.Dense(10)])
    teacher.compile(keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    teacher.fit(x[:1400], y[:1400], batch_size=64, epochs=6, verbose=0)

    student = keras.Sequential([keras.Input((64,)), L.Dense(24, activation="relu"), L.Dense(10)])
    model = Distiller(student, teacher)
    model.compile(keras.optimizers.Adam(2e-3))
    model.fit(x[:1400], y[:1400], batch_size=40, epochs=8, validation_data=(x[1400:], y[1400:]),
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
