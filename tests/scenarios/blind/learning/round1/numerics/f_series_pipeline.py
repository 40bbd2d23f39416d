"""Forecast the next value of a seasonal series with a GRU fed by tf.data."""
from common import *

WINDOW = 24


def series(n=2400):
    rng = np.random.default_rng(8)
    t = np.arange(n)
    s = np.sin(2 * np.pi * t / 24) + 0.6 * np.sin(2 * np.pi * t / 7 + 1) + 0.15 * rng.normal(size=n)
    return ((s - s.mean()) / s.std()).astype("float32")


def windows(s):
    x = np.stack([s[k:k + WINDOW] for k in range(len(s) - WINDOW)])[..., None]
    return x, s[WINDOW:, None]


def main(log):
    x, y = windows(series())
    cut = 2000
    feats = tf.data.Dataset.from_tensor_slices(x[:cut]).shuffle(2000)
    labels = tf.data.Dataset.from_tensor_slices(y[:cut]).shuffle(2000)
    train = tf.data.Dataset.zip((feats, labels)).batch(64).prefetch(2)
    val = tf.data.Dataset.from_tensor_slices((x[cut:], y[cut:])).batch(64)

    model = keras.Sequential([keras.Input((WINDOW, 1)), L.GRU(24), L.Dense(16, activation="relu"), L.Dense(1)])
    model.compile(keras.optimizers.Adam(3e-3), loss="mse", metrics=["mae"])
    model.fit(train, validation_data=val, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
