"""Small data that can be learned, and the shortest way to train on it."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from tests.scenarios.faults.base import profiled
from tests.scenarios.workloads import from_logits

FEATURES = 16
CLASSES = 5


def blobs(
    rows: int = 1920, classes: int = CLASSES, features: int = FEATURES, spread: float = 1.0
) -> tuple[Any, Any]:
    """Points around one center per class."""
    random = np.random.default_rng(seed=1)
    centers = random.normal(scale=1.5, size=(classes, features))
    labels = random.integers(0, classes, size=rows)
    points = centers[labels] + random.normal(scale=spread, size=(rows, features))
    return points.astype("float32"), labels.astype("int32")


def line(rows: int = 1920, features: int = FEATURES, scale: float = 1.0) -> tuple[Any, Any]:
    """A linear function with noise; `scale` is that of its values."""
    random = np.random.default_rng(seed=2)
    x = random.normal(size=(rows, features))
    y = x @ random.normal(size=(features, 1)) + 0.1 * random.normal(size=(rows, 1)) + 2
    return x.astype("float32"), (scale * y).astype("float32")


def waves(rows: int = 960, length: int = 24) -> tuple[Any, Any]:
    """Pieces of sine waves, and the value that comes next."""
    random = np.random.default_rng(seed=3)
    begin = random.uniform(0, 6.28, size=(rows, 1))
    speed = random.uniform(0.1, 0.4, size=(rows, 1))
    wave = np.sin(begin + speed * np.arange(length + 1)).astype("float32")
    return wave[:, :-1, None], wave[:, -1:]


def pictures(rows: int = 960, size: int = 12, classes: int = CLASSES) -> tuple[Any, Any]:
    """Noisy pictures with a bright stripe whose place is the class; pixels from 0 to 255."""
    random = np.random.default_rng(seed=4)
    labels = random.integers(0, classes, size=rows)
    x = random.uniform(0, 120, size=(rows, size, size, 1))
    for row, label in enumerate(labels):
        x[row, :, 2 * label : 2 * label + 2] += 120
    return x.astype("float32"), labels.astype("int32")


def dense(
    outputs: int = CLASSES,
    last: str | None = None,
    hidden: int = 1,
    units: int = 32,
    activation: str = "relu",
    features: int = FEATURES,
) -> keras.Sequential:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(units, activation=activation) for _ in range(hidden)]
    return keras.Sequential(
        [keras.Input((features,)), *layers, keras.layers.Dense(outputs, activation=last)]
    )


def classifier(
    optimizer: Any = "adam", hidden: int = 2, units: int = 32, **compile_options: Any
) -> keras.Sequential:
    """A compiled model for the blobs."""
    model = dense(hidden=hidden, units=units)
    model.compile(optimizer, from_logits(), **compile_options)
    return model


def train(
    logdir: str,
    model: keras.Model,
    data: Any,
    *,
    epochs: int = 3,
    batch: int = 32,
    update_freq: str | int = "batch",
    callbacks: tuple[keras.callbacks.Callback, ...] = (),
    **options: Any,
) -> None:
    """fit() under the profiler; `data` is (x, y) or a tf.data pipeline."""
    sizes: dict[str, Any] = {}
    x, y = data, None
    if isinstance(data, tuple):
        (x, y), sizes = data, {"batch_size": batch}
    with profiled(logdir, update_freq) as board:
        model.fit(x, y, epochs=epochs, verbose=0, callbacks=[*callbacks, board], **sizes, **options)
