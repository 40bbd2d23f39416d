"""What the programs with input faults share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults import base
from tests.scenarios.workloads import dense_model, from_logits

AUTOTUNE = tf.data.AUTOTUNE


def fit(logdir: str, data: Any, model: keras.Model | None = None, **options: Any) -> None:
    base.fit(logdir, model or dense_model(), data, **options)


def files_of(logdir: str) -> Path:
    """A folder beside the log directory for the data that a program reads."""
    folder = Path(logdir).parent / f"{Path(logdir).name}_data"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pictures(count: int, side: int = 48, distinct: int = 256) -> tf.data.Dataset:
    pixels = np.random.default_rng(1).random((distinct, side, side, 3), dtype=np.float32)
    labels = np.zeros(distinct, dtype=np.int32)
    return tf.data.Dataset.from_tensor_slices((pixels, labels)).repeat(count // distinct)


def flat_model(shape: tuple[int, ...], units: int = 32) -> keras.Model:
    keras.utils.set_random_seed(1)
    layers = [
        keras.layers.Input(shape),
        keras.layers.Flatten(),
        keras.layers.Dense(units, activation="relu"),
        keras.layers.Dense(10),
    ]
    model = keras.Sequential(layers)
    model.compile("sgd", from_logits())
    return model
