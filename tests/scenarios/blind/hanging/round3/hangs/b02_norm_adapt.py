"""Tabular regression with a Normalization layer fitted on the input pipeline."""
import os

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
BATCH = 64


def load_table(n=20000, d=24):
    rng = np.random.default_rng(11)
    x = rng.normal(3.0, 12.0, size=(n, d)).astype("float32")
    w = rng.normal(size=(d,)).astype("float32")
    y = (x @ w + rng.normal(size=n)).astype("float32")
    return x, y


def make_dataset(x, y, training):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    if training:
        ds = ds.shuffle(2048)
        ds = ds.repeat()
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def build_model(features):
    norm = keras.layers.Normalization(axis=-1)
    norm.adapt(features)
    return keras.Sequential([
        keras.Input((24,)),
        norm,
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ])


def main():
    x, y = load_table()
    train = make_dataset(x[:16000], y[:16000], training=True)
    valid = make_dataset(x[16000:], y[16000:], training=False)
    features = train.map(lambda a, b: a)
    if CONTROL:
        features = features.take(250)
    model = build_model(features)
    model.compile("adam", "mse")
    model.fit(train, steps_per_epoch=250, epochs=3, validation_data=valid, verbose=2)


if __name__ == "__main__":
    main()
