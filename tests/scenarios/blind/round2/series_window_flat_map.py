"""Forecast of a sensor from the last hour, windows by window().flat_map() as in the course."""
from harness import *

LEN = 60


def windowed(series, batch):
    ds = tf.data.Dataset.from_tensor_slices(series)
    ds = ds.window(LEN + 1, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda w: w.batch(LEN + 1))
    ds = ds.shuffle(1000)
    ds = ds.map(lambda w: (w[:-1], w[-1, :1]))
    return ds.batch(batch).prefetch(1)


def gathered(series, batch):
    n = len(series) - LEN
    series = tf.constant(series)
    offsets = tf.range(LEN + 1, dtype=tf.int64)

    def take(starts):
        w = tf.gather(series, starts[:, None] + offsets[None])
        return w[:, :-1], w[:, -1, :1]

    return tf.data.Dataset.range(n).shuffle(1000).batch(batch).map(take).prefetch(1)


def main(h):
    n = 20000
    t = np.arange(n + LEN, dtype="float32")
    rng = np.random.default_rng(0)
    cols = [np.sin(t / 30), np.cos(t / 70), t / n, rng.normal(0, 1, len(t))]
    series = np.stack(cols, 1).astype("float32")
    ds = gathered(series, 128) if h.fixed else windowed(series, 128)
    model = keras.Sequential(
        [
            keras.Input((LEN, 4)),
            keras.layers.Conv1D(16, 5, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), keras.losses.Huber(), metrics=["mae"])
    h.fit(model, ds)
