"""Knowledge distillation on an unlabelled transfer set: big teacher, small student."""
from common import *


class Distiller(keras.Model):
    def __init__(self, student, teacher, temperature=3.0):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.temperature = temperature
        self.kd = keras.metrics.Mean(name="loss")
        self.acc = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    @property
    def metrics(self):
        return [self.kd, self.acc]

    def call(self, x, training=False):
        return self.student(x, training=training)

    def distillation(self, x, training):
        t = self.temperature
        soft = tf.nn.softmax(self.teacher(x, training=False) / t)
        logits = self.student(x, training=training)
        log_q = tf.nn.log_softmax(logits / t)
        kl = tf.reduce_sum(soft * (tf.math.log(soft + 1e-8) - log_q), axis=-1)
        return tf.reduce_mean(kl) * t * t, logits

    def train_step(self, data):
        x, y = data  # y is for the metric only
        with tf.GradientTape() as tape:
            loss, logits = self.distillation(x, True)
        grads = tape.gradient(loss, self.student.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.student.trainable_variables))
        self.kd.update_state(loss)
        self.acc.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        loss, logits = self.distillation(x, False)
        self.kd.update_state(loss)
        self.acc.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    big = keras.Sequential(
        [keras.Input((64,)), L.Dense(256, activation="relu"), L.Dense(256, activation="relu"), L.Dense(10)]
    )
    big.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    big.fit(x[:700], y[:700], epochs=12, batch_size=64, verbose=0)

    teacher = keras.models.clone_model(big)  # a copy of our own, so that the original stays as it is
    teacher.trainable = False
    student = keras.Sequential([keras.Input((64,)), L.Dense(24, activation="relu"), L.Dense(10)])
    model = Distiller(student, teacher)
    model(x[:2])
    model.compile(optimizer=keras.optimizers.Adam(5e-3))
    model.fit(
        x[700:1500], y[700:1500], validation_data=(x[1500:], y[1500:]),
        epochs=12, batch_size=32, verbose=0, callbacks=log.callbacks(),
    )


if __name__ == "__main__":
    run(main)
