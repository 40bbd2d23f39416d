"""Neural ODE (fixed step RK4) that classifies spirals by where they came from."""
from harness import *


class Dynamics(keras.layers.Layer):
    def __init__(self, dim, hidden):
        super().__init__()
        self.l1 = keras.layers.Dense(hidden, activation="tanh")
        self.l2 = keras.layers.Dense(dim)
        self.l1.build((None, dim))
        self.l2.build((None, hidden))
        self.built = True

    def call(self, h):
        return self.l2(self.l1(h))


class ODENet(keras.Model):
    def __init__(self, loop, n_steps=20, dim=16):
        super().__init__()
        self.embed = keras.layers.Dense(dim)
        self.f = Dynamics(dim, 32)
        self.head = keras.layers.Dense(3)
        self.n_steps, self.loop = n_steps, loop

    def rk4(self, h):
        dt = 1.0 / self.n_steps
        k1 = self.f(h)
        k2 = self.f(h + 0.5 * dt * k1)
        k3 = self.f(h + 0.5 * dt * k2)
        k4 = self.f(h + dt * k3)
        return h + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    def call(self, x):
        h = self.embed(x)
        if self.loop:
            _, h = tf.while_loop(
                lambda i, h: i < self.n_steps,
                lambda i, h: (i + 1, self.rk4(h)),
                (tf.constant(0), h),
                maximum_iterations=self.n_steps,
            )
        else:
            for _ in range(self.n_steps):
                h = self.rk4(h)
        return self.head(h)


def main(h):
    rng = np.random.default_rng(2)
    n = 2560
    y = rng.integers(0, 3, n)
    r = rng.uniform(0.2, 2.0, n)
    a = r * 3 + y * 2.1 + rng.normal(0, 0.1, n)
    x = np.stack([r * np.cos(a), r * np.sin(a)], 1).astype("float32")
    model = ODENet(loop=h.fixed)
    model.compile(
        keras.optimizers.Adam(3e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    h.fit(model, x, y, batch_size=64)
