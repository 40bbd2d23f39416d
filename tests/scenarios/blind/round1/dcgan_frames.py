"""DCGAN in the style of the Keras examples, with a callback that makes the frames of a GIF."""
import tempfile

from harness import *

LATENT = 64


def make_generator():
    return keras.Sequential(
        [
            keras.Input((LATENT,)),
            keras.layers.Dense(7 * 7 * 16),
            keras.layers.LeakyReLU(negative_slope=0.2),
            keras.layers.Reshape((7, 7, 16)),
            keras.layers.Conv2DTranspose(16, 4, strides=2, padding="same"),
            keras.layers.LeakyReLU(negative_slope=0.2),
            keras.layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
        ],
        name="generator",
    )


def make_discriminator():
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(8, 4, strides=2, padding="same"),
            keras.layers.LeakyReLU(negative_slope=0.2),
            keras.layers.Conv2D(16, 4, strides=2, padding="same"),
            keras.layers.LeakyReLU(negative_slope=0.2),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ],
        name="discriminator",
    )


class GAN(keras.Model):
    def __init__(self, d, g):
        super().__init__()
        self.d, self.g = d, g
        self.d_loss = keras.metrics.Mean(name="d_loss")
        self.g_loss = keras.metrics.Mean(name="g_loss")

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def compile(self, d_opt, g_opt):
        super().compile()
        self.d_opt, self.g_opt = d_opt, g_opt
        self.bce = keras.losses.BinaryCrossentropy(from_logits=True)

    def train_step(self, real):
        n = tf.shape(real)[0]
        z = tf.random.normal((n, LATENT))
        with tf.GradientTape(persistent=True) as tape:
            fake = self.g(z, training=True)
            lf = self.d(fake, training=True)
            lr = self.d(real, training=True)
            dl = self.bce(tf.ones_like(lr), lr) + self.bce(tf.zeros_like(lf), lf)
            gl = self.bce(tf.ones_like(lf), lf)
        gd = tape.gradient(dl, self.d.trainable_variables)
        gg = tape.gradient(gl, self.g.trainable_variables)
        self.d_opt.apply_gradients(zip(gd, self.d.trainable_variables))
        self.g_opt.apply_gradients(zip(gg, self.g.trainable_variables))
        self.d_loss.update_state(dl)
        self.g_loss.update_state(gl)
        return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}


class Frames(keras.callbacks.Callback):
    """A grid of samples, and how well the discriminator tells held out images from samples."""

    def __init__(self, h, holdout):
        super().__init__()
        self.h, self.holdout = h, holdout
        self.every = None if h.fixed else 10
        self.z = np.random.default_rng(0).normal(size=(64, LATENT)).astype("float32")
        self.folder = tempfile.mkdtemp(dir=SCRATCH)
        self.frames, self.d_acc = 0, []

    def draw(self):
        with self.h.clock("predict"):
            ims = self.model.g.predict(self.z, verbose=0)
            on_fake = self.model.d.predict(ims, verbose=0)
            on_real = self.model.d.predict(self.holdout, verbose=0)
        with self.h.clock("callback"):
            self.d_acc.append(((on_real > 0).mean() + (on_fake < 0).mean()) / 2)
            grid = np.zeros((8 * 28, 8 * 28), "uint8")
            for i in range(8):
                for j in range(8):
                    tile = (ims[i * 8 + j, ..., 0] + 1) * 127.5
                    grid[i * 28 : i * 28 + 28, j * 28 : j * 28 + 28] = tile.astype("uint8")
            png = tf.io.encode_png(grid[..., None])
            tf.io.write_file(os.path.join(self.folder, f"frame_{self.frames:05d}.png"), png)
            self.frames += 1

    def on_train_batch_end(self, batch, logs=None):
        if self.every and batch % self.every == 0:
            self.draw()

    def on_epoch_end(self, epoch, logs=None):
        self.draw()


def main(h):
    rng = np.random.default_rng(1)
    yy, xx = np.mgrid[:28, :28]
    c = rng.uniform(8, 20, (4096, 2, 1, 1))
    r = rng.uniform(3, 8, (4096, 1, 1))
    d = np.sqrt((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2)
    images = np.where(np.abs(d - r) < 1.5, 1.0, -1.0).astype("float32")[..., None]
    ds = tf.data.Dataset.from_tensor_slices(images[:3520]).shuffle(3520).batch(32)
    ds = ds.prefetch(tf.data.AUTOTUNE)
    gan = GAN(make_discriminator(), make_generator())
    gan.compile(keras.optimizers.Adam(2e-4, 0.5), keras.optimizers.Adam(2e-4, 0.5))
    h.fit(gan, ds, callbacks=[Frames(h, images[-256:])])
