"""Gradient accumulation in an own train_step, so that a small batch fits the memory (digit images)."""
from common import *


class AccumModel(keras.Model):
    def __init__(self, n_accum=4):
        super().__init__()
        self.n_accum = n_accum
        self.c1 = L.Conv2D(16, 3, activation="relu")
        self.c2 = L.Conv2D(32, 3, activation="relu")
        self.flat = L.Flatten()
        self.d1 = L.Dense(64, activation="relu")
        self.out = L.Dense(10)

    def call(self, x, training=False):
        x = self.c2(self.c1(x))
        return self.out(self.d1(self.flat(x)))

    def prepare(self):
        self.counter = tf.Variable(0, dtype=tf.int32, trainable=False)
        self.accumulated = [tf.Variable(tf.zeros(v.shape), trainable=False) for v in self.trainable_variables]

    def train_step(self, data):
        x, y = data
        self.counter.assign_add(1)
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=logits)
        grads = tape.gradient(loss, self.trainable_variables)
        for acc, g in zip(self.accumulated, grads):
            acc.assign_add(g / self.n_accum)
        tf.cond(tf.equal(self.counter % self.n_accum, 0), self.apply_accumulated, lambda: None)
        for m in self.metrics:
            if m.name == "loss":
                m.update_state(loss)
            else:
                m.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}

    def apply_accumulated(self):
        self.optimizer.apply_gradients(zip([a.value() for a in self.accumulated], self.trainable_variables))
        self.counter.assign(0)


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32").reshape(-1, 8, 8, 1)
    y = y.astype("int32")
    model = AccumModel(4)
    model(x[:2])
    model.prepare()
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    model.fit(x[:1440], y[:1440], batch_size=24, epochs=7, validation_data=(x[1440:], y[1440:]),
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
