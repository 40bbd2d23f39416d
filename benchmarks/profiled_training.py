"""Trains a small Keras model under the TensorFlow profiler, for the real traces of the benchmark.

It is a separate program (`python profiled_training.py LOGDIR STEPS`), because the profiler keeps
every event in memory until it stops, which must not burden the benchmark itself.

The model has many narrow layers: hardly any arithmetic, but about 100 kB of events per step.
"""

from __future__ import annotations

import os
import sys

LAYERS = 31
UNITS = 16
BATCH = 16


def main(logdir: str, steps: int) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras  # noqa: PLC0415  the environment must be set before TensorFlow loads
    import numpy as np  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415

    model = keras.Sequential(
        [keras.layers.Input((UNITS,))]
        + [keras.layers.Dense(UNITS, activation="relu") for _ in range(LAYERS)]
        + [keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    rows = np.random.default_rng(0).normal(size=(BATCH * 64, UNITS)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1])).repeat().batch(BATCH)
    tf.profiler.experimental.start(logdir)
    model.fit(data.prefetch(2), steps_per_epoch=steps, epochs=1, verbose=0)
    tf.profiler.experimental.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
