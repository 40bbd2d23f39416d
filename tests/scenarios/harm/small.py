"""Small models and data, the same in every process."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FEATURES = 8
ROWS = 96
BATCH = 8


def tf() -> Any:
    import tensorflow  # noqa: PLC0415 (not every program has it)

    return tensorflow


def keras() -> Any:
    return tf().keras


def data() -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(ROWS, FEATURES)).astype("float32")
    return x, (x[:, :1] * 2 + 1).astype("float32")


def dataset() -> Any:
    return tf().data.Dataset.from_tensor_slices(data()).batch(BATCH)


def layers() -> list[Any]:
    k = keras()
    k.utils.set_random_seed(1)
    return [k.layers.Dense(16, activation="relu"), k.layers.Dropout(0.1), k.layers.Dense(1)]


def model(**options: Any) -> Any:
    k = keras()
    made = k.Sequential([k.layers.Input((FEATURES,)), *layers()])
    made.compile(**{"optimizer": k.optimizers.Adam(0.01), "loss": "mse", **options})
    return made


def fit(of: Any, callbacks: list[Any], epochs: int = 2, **options: Any) -> Any:
    return of.fit(
        *data(),
        **{"batch_size": BATCH, "epochs": epochs, "verbose": 0, "shuffle": False, **options},
        callbacks=callbacks,
    )
