"""SIREN: an image as a function of its coordinates. NaN hunting was left switched on."""
from harness import *


class Sine(keras.layers.Layer):
    def __init__(self, units, w0=30.0, first=False):
        super().__init__()
        self.units, self.w0, self.first = units, w0, first

    def build(self, shape):
        n = shape[-1]
        lim = 1.0 / n if self.first else np.sqrt(6.0 / n) / self.w0
        init = keras.initializers.RandomUniform(-lim, lim)
        self.w = self.add_weight(shape=(n, self.units), initializer=init)
        self.b = self.add_weight(shape=(self.units,), initializer="zeros")

    def call(self, x):
        return tf.sin(self.w0 * (tf.matmul(x, self.w) + self.b))


def main(h):
    if not h.fixed:
        tf.debugging.enable_check_numerics()
    side = 192
    g = np.linspace(-1, 1, side, dtype="float32")
    yy, xx = np.meshgrid(g, g, indexing="ij")
    rgb = np.stack([np.sin(9 * xx * yy), np.cos(7 * xx), np.sin(5 * yy + 3 * xx)], -1)
    coords = np.stack([yy, xx], -1).reshape(-1, 2)
    rgb = rgb.reshape(-1, 3).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices((coords, rgb)).batch(4608)
    ds = ds.cache().shuffle(16).repeat(45).prefetch(4)

    model = keras.Sequential(
        [
            keras.Input((2,)),
            Sine(32, first=True),
            Sine(32),
            Sine(32),
            keras.layers.Dense(3),
        ]
    )
    model.compile(keras.optimizers.Adam(1e-4), "mse")
    h.fit(model, ds)
