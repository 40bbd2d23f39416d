"""Satellite patches that lie in an object store; land use classes.

The GET of the store takes 10 to 14 ms for every object (sleep stands for the round trip)."""
import tempfile
import time

from harness import *

SIZE, BANDS, CLASSES = 48, 4, 5


class Bucket:
    """boto3-like client, with a folder behind it."""

    def __init__(self, root):
        self.root = root

    def get_object(self, key):
        time.sleep(0.010 + (hash(key) % 5) / 1000)  # round trip to the store
        with open(os.path.join(self.root, key), "rb") as f:
            return f.read()


def fill(n):
    root = tempfile.mkdtemp(dir=SCRATCH)
    rng = np.random.default_rng(5)
    keys, labels = [], []
    for i in range(n):
        c = int(rng.integers(CLASSES))
        a = rng.normal(800 + 300 * c, 150, (SIZE, SIZE, BANDS)).astype("<u2")
        key = f"patch_{i:05d}.raw"
        a.tofile(os.path.join(root, key))
        keys.append(key)
        labels.append(c)
    return Bucket(root), keys, labels


def main(h):
    bucket, keys, labels = fill(384)

    def fetch(key):
        raw = bucket.get_object(key.decode())
        a = np.frombuffer(raw, "<u2").reshape(SIZE, SIZE, BANDS)
        return a.astype("float32") / 3000.0

    fetch = h.timed(fetch, "py_function")

    def load(key, label):
        x = tf.numpy_function(fetch, [key], tf.float32)
        x.set_shape((SIZE, SIZE, BANDS))
        return x, label

    def augment(x, label):
        return tf.image.random_flip_left_right(tf.image.random_flip_up_down(x)), label

    ds = tf.data.Dataset.from_tensor_slices((keys, labels)).shuffle(384, seed=2)
    if h.fixed:
        ds = ds.map(load, num_parallel_calls=16)
    else:
        ds = ds.map(load)
    ds = ds.map(augment).batch(12).prefetch(1)
    if h.fixed:  # waiting calls need threads of their own on two cores
        opts = tf.data.Options()
        opts.threading.private_threadpool_size = 20
        ds = ds.with_options(opts)

    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, BANDS)),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(CLASSES),
        ]
    )
    model.compile(
        "rmsprop",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    h.fit(model, ds)
