"""Train on a shuffled stream of windows and validate after every epoch."""
import os

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
WINDOW = 24
BATCH = 32

tf.config.threading.set_intra_op_parallelism_threads(1)


def make_windows(series, training):
    ds = keras.utils.timeseries_dataset_from_array(
        series[:-WINDOW], series[WINDOW:], sequence_length=WINDOW,
        batch_size=BATCH, shuffle=training)
    if CONTROL and not training:
        return ds.prefetch(2)
    return ds.repeat().prefetch(2)


def main():
    t = np.arange(6000, dtype="float32")
    noise = np.random.default_rng(2).normal(scale=0.1, size=t.size)
    series = (np.sin(t / 20.0) + noise).astype("float32")[:, None]
    train_ds = make_windows(series[:5000], training=True)
    val_ds = make_windows(series[5000:], training=False)

    model = keras.Sequential([
        keras.Input((WINDOW, 1)),
        keras.layers.Conv1D(16, 5, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1),
    ])
    model.compile("adam", "mse", metrics=["mae"])
    history = model.fit(
        train_ds,
        steps_per_epoch=150,
        validation_data=val_ds,
        epochs=5,
        verbose=2,
    )
    print("best val_loss:", min(history.history["val_loss"]))


if __name__ == "__main__":
    main()
