"""A small diffusion model; a callback samples a grid after each epoch, step by step."""
import tempfile
from harness import *

L, STEPS = keras.layers, 160
BETAS = np.linspace(1e-4, 0.02, STEPS).astype("float32")
ABAR = np.cumprod(1 - BETAS).astype("float32")


def denoiser():
    img, t = keras.Input((16, 16, 1)), keras.Input((1,))
    e = L.Dense(32, activation="swish")(L.Rescaling(1 / STEPS)(t))
    x = L.Conv2D(16, 3, padding="same", activation="swish")(img)
    d = L.Conv2D(32, 3, strides=2, padding="same", activation="swish")(x)
    d = L.Add()([d, L.Reshape((1, 1, 32))(e)])
    d = L.Conv2D(32, 3, padding="same", activation="swish")(d)
    u = L.Concatenate()([L.UpSampling2D()(d), x])
    u = L.Conv2D(16, 3, padding="same", activation="swish")(u)
    return keras.Model([img, t], L.Conv2D(1, 3, padding="same")(u))


class Diffusion(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = denoiser()
        self.abar = tf.constant(ABAR)

    def call(self, x):
        return self.net(x)

    def train_step(self, x0):
        n = tf.shape(x0)[0]
        t = tf.random.uniform((n,), 0, STEPS, tf.int32)
        a = tf.reshape(tf.gather(self.abar, t), (-1, 1, 1, 1))
        eps = tf.random.normal(tf.shape(x0))
        xt = tf.sqrt(a) * x0 + tf.sqrt(1 - a) * eps
        with tf.GradientTape() as tape:
            pred = self.net([xt, tf.cast(t[:, None], tf.float32)], training=True)
            loss = tf.reduce_mean((eps - pred) ** 2)
        g = tape.gradient(loss, self.net.trainable_variables)
        self.optimizer.apply_gradients(zip(g, self.net.trainable_variables))
        return {"loss": loss}


class SampleGrid(keras.callbacks.Callback):
    def __init__(self, h, every, folder):
        super().__init__()
        self.h, self.every, self.folder = h, every, folder

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every:
            return
        with self.h.clock("callback"):
            x = tf.random.normal((16, 16, 16, 1))
            for t in reversed(range(STEPS)):
                eps = self.model.net([x, tf.fill((16, 1), float(t))], training=False)
                x = (x - BETAS[t] / np.sqrt(1 - ABAR[t]) * eps) / np.sqrt(1 - BETAS[t])
                if t:
                    x += np.sqrt(BETAS[t]) * tf.random.normal(x.shape)
            grid = tf.reshape(tf.transpose(tf.reshape(x, (4, 4, 16, 16)), (0, 2, 1, 3)), (64, 64, 1))
            png = tf.io.encode_png(tf.cast(tf.clip_by_value(grid * 127 + 127, 0, 255), tf.uint8))
            tf.io.write_file(os.path.join(self.folder, f"epoch_{epoch}.png"), png)


def main(h):
    x = np.random.default_rng(0).normal(0, 0.5, (2560, 16, 16, 1)).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(2560).batch(32, drop_remainder=True).prefetch(2)
    model = Diffusion()
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    cb = SampleGrid(h, 10 if h.fixed else 1, tempfile.mkdtemp(dir=SCRATCH))
    h.fit(model, ds, callbacks=[cb])
