"""Keyword spotting: features made by a numpy MFCC in tf.numpy_function."""
from harness import *

RATE, WIN, HOP, MELS = 16000, 400, 160, 40


def mel_bank(bins=257):
    hz = np.linspace(0, RATE / 2, bins)
    mel = 2595 * np.log10(1 + hz / 700)
    pts = np.linspace(mel[0], mel[-1], MELS + 2)
    bank = np.zeros((bins, MELS), "float32")
    for m in range(MELS):
        up = (mel - pts[m]) / (pts[m + 1] - pts[m])
        down = (pts[m + 2] - mel) / (pts[m + 2] - pts[m + 1])
        bank[:, m] = np.maximum(0, np.minimum(up, down))
    return bank


BANK = mel_bank()
WINDOW = np.hanning(WIN).astype("float32")


def log_mel(wave):
    wave = np.append(wave[0], wave[1:] - 0.97 * wave[:-1])
    frames = []
    for start in range(0, len(wave) - WIN + 1, HOP):
        f = wave[start : start + WIN] * WINDOW
        f = f - f.mean()
        p = np.abs(np.fft.rfft(f, 512)) ** 2 / 512
        e = np.array([np.sum(p * BANK[:, m]) for m in range(0, MELS)])
        frames.append(np.log(e + 1e-6))
    out = np.array(frames, "float32")
    return (out - out.mean()) / (out.std() + 1e-6)


def log_mel_graph(wave):
    wave = tf.concat([wave[:1], wave[1:] - 0.97 * wave[:-1]], 0)
    f = tf.signal.frame(wave, WIN, HOP) * WINDOW
    f -= tf.reduce_mean(f, -1, keepdims=True)
    p = tf.abs(tf.signal.rfft(f, [512])) ** 2 / 512
    out = tf.math.log(p @ BANK + 1e-6)
    return (out - tf.reduce_mean(out)) / (tf.math.reduce_std(out) + 1e-6)


def main(h):
    rng = np.random.default_rng(3)
    n = 160
    labels = rng.integers(0, 10, n)
    t = np.arange(RATE) / RATE
    waves = np.sin(2 * np.pi * (200 + 150 * labels[:, None]) * t) + rng.normal(0, 0.3, (n, RATE))
    waves = waves.astype("float32")
    timed = h.timed(log_mel, "py_function")

    def features(w, y):
        if h.fixed:
            return tf.ensure_shape(log_mel_graph(w), (98, MELS)), y
        z = tf.numpy_function(timed, [w], tf.float32)
        z.set_shape((98, MELS))
        return z, y

    ds = tf.data.Dataset.from_tensor_slices((waves, labels)).shuffle(n)
    ds = ds.map(features, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(4).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.Input((98, MELS)),
            keras.layers.Conv1D(32, 5, activation="relu"),
            keras.layers.MaxPooling1D(),
            keras.layers.Conv1D(32, 5, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    h.fit(model, ds)
