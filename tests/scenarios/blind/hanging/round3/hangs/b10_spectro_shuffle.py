"""Keyword spotting: spectrograms computed on the fly, shuffled over the whole set."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
RATE, NFFT, HOP, MELS = 16000, 512, 160, 40
CLIPS, COPIES = 200, 10


def write_corpus():
    folder = tempfile.mkdtemp(prefix="kws_")
    rng = np.random.default_rng(0)
    t = np.arange(RATE) / RATE
    for i in range(CLIPS):
        wave = np.sin(2 * np.pi * (200 + 150 * (i % 6)) * t) + 0.3 * rng.normal(size=RATE)
        np.save(os.path.join(folder, "clip%04d.npy" % i), (wave * 8000).astype("int16"))
    return folder


def mel_filters():
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), MELS + 2)
    hz = 700 * (10 ** (mel / 2595) - 1)
    freqs = np.fft.rfftfreq(NFFT, 1 / RATE)
    bank = np.zeros((MELS, len(freqs)))
    for m in range(MELS):
        for k, f in enumerate(freqs):
            up = (f - hz[m]) / (hz[m + 1] - hz[m])
            down = (hz[m + 2] - f) / (hz[m + 2] - hz[m + 1])
            bank[m, k] = max(0.0, min(up, down))
    return bank


def log_mel(wave):
    frames = np.lib.stride_tricks.sliding_window_view(wave, NFFT)[::HOP] * np.hanning(NFFT)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    return np.log(power @ mel_filters().T + 1e-6).astype("float32")


def main():
    keras.utils.set_random_seed(0)
    folder = write_corpus()
    rng = np.random.default_rng(1)

    def examples():
        for _ in range(COPIES):
            for i in range(CLIPS):
                wave = np.load(os.path.join(folder, "clip%04d.npy" % i)).astype("float32")
                wave = np.roll(wave, rng.integers(-2000, 2000))
                yield log_mel(wave), i % 6

    spec = (tf.TensorSpec((None, MELS), tf.float32), tf.TensorSpec((), tf.int32))
    ds = tf.data.Dataset.from_generator(examples, output_signature=spec)
    ds = ds.shuffle(32 if CONTROL else CLIPS * COPIES)
    ds = ds.batch(20).prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential([
        keras.Input((None, MELS)),
        keras.layers.Conv1D(32, 5, strides=2, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(6),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(ds, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
