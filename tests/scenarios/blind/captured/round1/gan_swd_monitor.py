"""DCGAN on procedurally drawn 'blob faces' (32x32), with the sliced-Wasserstein score shown while it trains."""
import json, os, sys, time
import numpy as np
import tensorflow as tf
import keras
from keras import layers
try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
LOGDIR = sys.argv[1]
LATENT, BATCH = 64, 32
rng = np.random.default_rng(0)
clock = {"swd": 0.0, "epoch": 0.0}


def blob_faces(n):
    yy, xx = np.mgrid[-1:1:32j, -1:1:32j]
    out = np.empty((n, 32, 32, 3), "float32")
    for i in range(n):
        cx, cy, r = rng.uniform(-.2, .2, 2).tolist() + [rng.uniform(.5, .8)]
        face = ((xx - cx) ** 2 + (yy - cy) ** 2 < r * r).astype("float32")
        eyes = (((abs(xx - cx) - .25) ** 2 + (yy - cy + .15) ** 2) < .015).astype("float32")
        out[i] = (face - eyes)[..., None] * rng.uniform(.3, 1, 3) * 2 - 1
    return out


def make_generator():
    return keras.Sequential([
        keras.Input((LATENT,)), layers.Dense(8 * 8 * 48), layers.Reshape((8, 8, 48)),
        layers.Conv2DTranspose(48, 4, strides=2, padding="same", activation="relu"),
        layers.Conv2DTranspose(24, 4, strides=2, padding="same", activation="relu"),
        layers.Conv2D(3, 3, padding="same", activation="tanh")])


def make_critic():
    return keras.Sequential([
        keras.Input((32, 32, 3)), layers.Conv2D(24, 4, strides=2, padding="same"), layers.LeakyReLU(.2),
        layers.Conv2D(48, 4, strides=2, padding="same"), layers.LeakyReLU(.2),
        layers.Flatten(), layers.Dense(1)])


class GAN(keras.Model):
    def __init__(self, g, d):
        super().__init__()
        self.g, self.d = g, d
        self.gm, self.dm = keras.metrics.Mean("g_loss"), keras.metrics.Mean("d_loss")

    def compile(self, g_opt, d_opt):
        super().compile(jit_compile=False)
        self.g_opt, self.d_opt = g_opt, d_opt
        self.bce = keras.losses.BinaryCrossentropy(from_logits=True)

    @property
    def metrics(self):
        return [self.gm, self.dm]

    def train_step(self, real):
        n = tf.shape(real)[0]
        with tf.GradientTape() as dt, tf.GradientTape() as gt:
            fake = self.g(tf.random.normal((n, LATENT)), training=True)
            pr, pf = self.d(real, training=True), self.d(fake, training=True)
            dl = self.bce(tf.ones_like(pr) * .9, pr) + self.bce(tf.zeros_like(pf), pf)
            gl = self.bce(tf.ones_like(pf), pf)
        self.d_opt.apply_gradients(zip(dt.gradient(dl, self.d.trainable_variables), self.d.trainable_variables))
        self.g_opt.apply_gradients(zip(gt.gradient(gl, self.g.trainable_variables), self.g.trainable_variables))
        self.gm.update_state(gl), self.dm.update_state(dl)
        return {m.name: m.result() for m in self.metrics}


class SWDMonitor(keras.callbacks.Callback):
    """Sliced Wasserstein distance between real and generated pictures (Karras et al. 2018, simplified)."""
    def __init__(self, real, every):
        super().__init__()
        self.real, self.every, self.scores = real.reshape(len(real), -1), every, []
        dirs = np.random.randn(self.real.shape[1], 1024).astype("float32")
        self.dirs = dirs / np.linalg.norm(dirs, axis=0)
        self.z = tf.random.normal((len(real), LATENT), seed=3)

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if self.every and batch % self.every == 0:
            self.score()

    def on_epoch_end(self, epoch, logs=None):
        clock["epoch"] = time.perf_counter() - self.t0
        self.score() if not self.every else None

    def score(self):
        t = time.perf_counter()
        fake = self.model.g(self.z, training=False).numpy().reshape(len(self.real), -1)
        self.scores.append(float(np.abs(np.sort(self.real @ self.dirs, axis=0) - np.sort(fake @ self.dirs, axis=0)).mean()))
        clock["swd"] += time.perf_counter() - t


images = blob_faces(1280)
ds = tf.data.Dataset.from_tensor_slices(images).shuffle(1280).batch(BATCH, drop_remainder=True).prefetch(2)
gan = GAN(make_generator(), make_critic())
gan.compile(keras.optimizers.Adam(2e-4, .5), keras.optimizers.Adam(2e-4, .5))
monitor = SWDMonitor(images[:128], every=None if CONTROL else 1)
callbacks = [monitor] + ([StallCallback(LOGDIR)] if StallCallback else [])
gan.fit(ds, epochs=1, callbacks=callbacks, verbose=2)
print("swd", monitor.scores[0], "->", monitor.scores[-1])
print(json.dumps({"epoch1_s": round(clock["epoch"], 2), "blamed_s": round(0 if CONTROL else clock["swd"], 2)}))
