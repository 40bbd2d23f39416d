"""Toy DDPM on 16x16 shapes; a callback draws a grid of samples while it trains."""
import tempfile

from harness import *

T = 60
BETA = np.linspace(1e-4, 0.06, T).astype("float32")
ABAR = np.cumprod(1 - BETA).astype("float32")


class Denoiser(keras.Model):
    def __init__(self):
        super().__init__()
        self.emb = keras.layers.Embedding(T, 32)
        self.flat = keras.layers.Flatten()
        self.hid = [keras.layers.Dense(192, activation="silu") for _ in range(3)]
        self.last = keras.layers.Dense(256)
        self.shape = keras.layers.Reshape((16, 16, 1))

    def call(self, inputs):
        x, t = inputs
        z = keras.ops.concatenate([self.flat(x), self.emb(t)], -1)
        for layer in self.hid:
            z = layer(z)
        return self.shape(self.last(z))


class SampleGrid(keras.callbacks.Callback):
    def __init__(self, h, folder, every=30):
        super().__init__()
        self.h, self.folder, self.every = h, folder, every
        self.n = 0

    def draw(self):
        with self.h.clock("callback"):
            x = tf.random.normal((16, 16, 16, 1))
            for t in reversed(range(T)):
                eps = self.model((x, tf.fill([16], t)), training=False)
                a = 1 - BETA[t]
                x = (x - BETA[t] / np.sqrt(1 - ABAR[t]) * eps) / np.sqrt(a)
                if t:
                    x = x + np.sqrt(BETA[t]) * tf.random.normal(x.shape)
            rows = np.concatenate([np.concatenate(list(r), 1) for r in x.numpy().reshape(4, 4, 16, 16)])
            img = ((rows.clip(-1, 1) + 1) * 127).astype("uint8")[..., None]
            tf.io.write_file(f"{self.folder}/s{self.n:05d}.png", tf.io.encode_png(img))
            self.n += 1

    def on_train_batch_end(self, batch, logs=None):
        if not self.h.fixed and batch % self.every == 0:
            self.draw()

    def on_epoch_end(self, epoch, logs=None):
        if self.h.fixed:
            self.draw()


def main(h):
    rng = np.random.default_rng(0)
    n = 64 * 240
    x0 = -np.ones((n, 16, 16, 1), "float32")
    for i in range(n):
        a, b = rng.integers(1, 9, 2)
        x0[i, a : a + 6, b : b + 6] = 1
    t = rng.integers(0, T, n).astype("int32")
    eps = rng.normal(size=x0.shape).astype("float32")
    ab = ABAR[t][:, None, None, None]
    xt = np.sqrt(ab) * x0 + np.sqrt(1 - ab) * eps
    ds = tf.data.Dataset.from_tensor_slices(((xt, t), eps)).batch(64).prefetch(2)
    model = Denoiser()
    model((xt[:1], t[:1]))
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    h.fit(model, ds, callbacks=[SampleGrid(h, tempfile.mkdtemp(dir=SCRATCH))])
