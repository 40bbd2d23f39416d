"""RealNVP on two moons: subclassed model with its own train_step."""
from common import *


class Coupling(L.Layer):
    def __init__(self, swap, **kw):
        super().__init__(**kw)
        self.swap = swap
        self.net = keras.Sequential(
            [L.Dense(64, activation="tanh"), L.Dense(64, activation="tanh"), L.Dense(2, kernel_initializer="zeros")]
        )

    def halves(self, x):
        a, b = tf.split(x, 2, axis=-1)
        return (b, a) if self.swap else (a, b)

    def join(self, a, b):
        return tf.concat([b, a] if self.swap else [a, b], axis=-1)

    def call(self, x):
        a, b = self.halves(x)
        s, t = tf.split(self.net(a), 2, axis=-1)
        return self.join(a, (b - t) * tf.exp(-s)), tf.reduce_sum(s, axis=-1)

    def inverse(self, z):
        a, b = self.halves(z)
        s, t = tf.split(self.net(a), 2, axis=-1)
        return self.join(a, b * tf.exp(s) + t)


class RealNVP(keras.Model):
    def __init__(self, depth=4):
        super().__init__()
        self.steps = [Coupling(i % 2 == 1) for i in range(depth)]
        self.nll = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.nll]

    def call(self, x):
        log_det = tf.zeros(tf.shape(x)[0])
        for c in self.steps:
            x, ld = c(x)
            log_det += ld
        return x, log_det

    def sample(self, n):
        z = tf.random.normal((n, 2))
        for c in reversed(self.steps):
            z = c.inverse(z)
        return z

    def objective(self, x):
        z, log_det = self(x)
        log_p = -0.5 * tf.reduce_sum(z**2, axis=-1) - np.log(2 * np.pi)
        return -tf.reduce_mean(log_p + log_det)

    def train_step(self, x):
        with tf.GradientTape() as tape:
            loss = self.objective(x)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.nll.update_state(loss)
        return {"loss": self.nll.result()}

    def test_step(self, x):
        self.nll.update_state(self.objective(x))
        return {"loss": self.nll.result()}


def moons(n, rng):
    t = rng.random(n) * np.pi
    up = rng.random(n) < 0.5
    x = np.where(up, np.cos(t), 1 - np.cos(t))
    y = np.where(up, np.sin(t), 0.5 - np.sin(t))
    return (np.stack([x, y], 1) + 0.05 * rng.normal(size=(n, 2))).astype("float32")


def main(log):
    rng = np.random.default_rng(0)
    x, xv = standardised(moons(4000, rng)), standardised(moons(1000, rng))
    train = tf.data.Dataset.from_tensor_slices(x).shuffle(4000, seed=1).batch(80)
    val = tf.data.Dataset.from_tensor_slices(xv).batch(500)
    model = RealNVP()
    model(x[:2])
    model.compile(optimizer=keras.optimizers.Adam(2e-3, global_clipnorm=1.0))
    model.fit(train, validation_data=val, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
