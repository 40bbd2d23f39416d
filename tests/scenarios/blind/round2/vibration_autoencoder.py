"""Healthy, looks odd: anomaly detection on vibration; Python generator, sample weights, few steps."""
from harness import *

LEN, CH, BATCH, STEPS = 512, 8, 32, 40


def main(h):
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    signal = rng.normal(size=(60000, CH)).astype("float32")
    signal += np.sin(np.arange(60000) / 17)[:, None].astype("float32")

    def windows():
        r = np.random.default_rng(2)
        for _ in range(STEPS):
            at = r.integers(0, len(signal) - LEN, BATCH)
            w = signal[at[:, None] + np.arange(LEN)]
            yield w, w, 1.0 / (1.0 + w.std((1, 2)))[:, None]

    spec = tf.TensorSpec((BATCH, LEN, CH), tf.float32)
    ds = tf.data.Dataset.from_generator(
        h.gen(windows), output_signature=(spec, spec, tf.TensorSpec((BATCH, 1), tf.float32))
    ).prefetch(tf.data.AUTOTUNE)
    L = keras.layers
    model = keras.Sequential([
        L.Input((LEN, CH)),
        L.Conv1D(64, 9, padding="same", activation="relu"),
        L.Conv1D(96, 9, padding="same", strides=2, activation="relu"),
        L.Conv1D(96, 9, padding="same", activation="relu"),
        L.UpSampling1D(2),
        L.Conv1D(64, 9, padding="same", activation="relu"),
        L.Conv1D(CH, 9, padding="same"),
    ])
    model.compile("adam", "mse")
    h.fit(model, ds)
