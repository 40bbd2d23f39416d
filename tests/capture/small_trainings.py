"""Small trainings under a capture, for the tests. Imports TensorFlow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow

from tb_stall_plugin.capture.process.guard import guard

tf = tensorflow
keras = tf.keras
IS_KERAS_3 = hasattr(keras, "ops")
FEATURES = 8


def small_model(**options: Any) -> Any:
    """A model of two layers, named first and last."""
    keras.utils.set_random_seed(1)
    layers = [
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(16, activation="relu", name="first"),
        keras.layers.Dense(1, name="last", dtype="float32"),
    ]
    model = keras.Sequential(layers)
    model.compile(**{"optimizer": keras.optimizers.SGD(0.01), "loss": "mse", **options})
    return model


def batches(steps: int, batch: int = 4) -> Any:
    """A dataset of that many batches, always the same."""
    random = np.random.default_rng(0)
    x = random.normal(size=(steps * batch, FEATURES)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(batch)


def finish(logdir: Path) -> None:
    """Does what the end of the process does: saves the open profile and writes all records."""
    captured = guard(logdir)
    captured.on_end()
    captured.recorder.flush(urgent=True)


def profiles(logdir: Path) -> list[Path]:
    return sorted(logdir.glob("plugins/profile/*/*.xplane.pb"))
