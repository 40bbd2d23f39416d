"""Denoising autoencoder fed by a Python generator over a memmap. Looks odd, is healthy."""
import tempfile
from harness import *

L = keras.layers


def main(h):
    path = os.path.join(tempfile.mkdtemp(dir=SCRATCH), "images.npy")
    rng = np.random.default_rng(0)
    np.save(path, rng.integers(0, 255, (960, 64, 64, 3), dtype=np.uint8))
    data = np.load(path, mmap_mode="r")

    def batches():
        for i in range(0, len(data), 16):
            yield np.array(data[i : i + 16])

    def prepare(x):
        x = tf.cast(x, tf.float32) / 255.0
        return x, x

    spec = tf.TensorSpec((16, 64, 64, 3), tf.uint8)
    ds = tf.data.Dataset.from_generator(h.gen(batches), output_signature=spec).map(prepare).prefetch(2)

    def ssim_l1(a, b):
        return 0.8 * tf.reduce_mean(tf.abs(a - b)) + 0.2 * (1 - tf.reduce_mean(tf.image.ssim(a, b, 1.0)))

    inp = keras.Input((64, 64, 3))
    x = L.GaussianNoise(0.1)(inp)
    x = L.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = L.Conv2D(32, 3, strides=2, padding="same", activation="relu")(x)
    x = L.Conv2D(64, 3, strides=2, padding="same", activation="relu")(x)
    x = L.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(x)
    x = L.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(x)
    model = keras.Model(inp, L.Conv2D(3, 3, padding="same", activation="sigmoid")(x))
    model.compile("adam", ssim_l1)
    h.fit(model, ds)
