"""Models as the real Keras stores them, in versions 2 and 3.

    python -m tests.detectors.stored_models FILE

writes them anew with whatever Keras is installed; Keras 2 does not store how a model was compiled.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stall_analyzer.events.keras_config import parse_keras_config
from stall_analyzer.model.event_log import KerasConfig

FOLDER = Path(__file__).parent / "keras_models"
VERSIONS = ("keras2", "keras3")


def stored(name: str, version: str = "keras3") -> KerasConfig:
    return parse_keras_config(json.dumps(_all(version)[name]), wall_ns=10**15)


@cache
def _all(version: str) -> dict[str, Any]:
    models: dict[str, Any] = json.loads((FOLDER / f"{version}.json").read_text("utf-8"))
    return models


def _made() -> dict[str, Any]:
    keras = import_module("keras")
    layers, optimizers, losses = keras.layers, keras.optimizers, keras.losses
    dense, constant = layers.Dense, keras.initializers.Constant

    def chain(*inside: Any, shape: tuple[int, ...] = (64,)) -> Any:
        return keras.Sequential([keras.Input(shape), *inside])

    def functional(*inside: Any) -> Any:
        first = x = keras.Input((64,))
        for layer in inside:
            x = layer(x)
        return keras.Model(first, x)

    def around(*inside: Any) -> Any:
        first = x = dense(64)(start := keras.Input((64,)))
        for layer in inside:
            x = layer(x)
        return keras.Model(start, dense(10, "softmax")(layers.Add()([first, x])))

    classes = "sparse_categorical_crossentropy"
    normal = keras.initializers.RandomNormal
    ten, sigmoids = dense(10, "softmax"), [dense(32, "sigmoid") for _ in range(6)]
    built: dict[str, tuple[Any, Any, Any]] = {
        "sound": (chain(dense(64, "relu"), dense(10, "softmax")), "sgd", classes),
        "zeros": (chain(dense(64, "relu", kernel_initializer="zeros"), ten), "adam", classes),
        "zeros last": (
            chain(dense(64, "relu"), dense(10, "softmax", kernel_initializer="zeros")),
            "adam", classes,
        ),
        "zeros, functional": (
            functional(dense(64, "relu", kernel_initializer="zeros"), dense(10, "softmax")),
            "adam", classes,
        ),
        "zeros, nested": (
            functional(
                chain(dense(64, "relu", kernel_initializer="zeros")), dense(10, "softmax")
            ),
            "adam", classes,
        ),
        "zeros, gone around": (
            around(dense(64, "relu", kernel_initializer="zeros")), "adam", classes
        ),
        "bias below zero": (
            chain(dense(64, "relu", bias_initializer=constant(-0.6)), dense(10, "softmax")),
            "adam", classes,
        ),
        "bias below zero, relu behind": (
            chain(dense(64, bias_initializer=constant(-2.0)), layers.ReLU(), dense(10, "softmax")),
            "adam", classes,
        ),
        "wide": (
            chain(dense(64, "relu", kernel_initializer=normal(stddev=5.0)), dense(10, "softmax")),
            "adam", classes,
        ),
        "clipped": (
            chain(dense(64, "relu"), dense(10, "softmax")),
            optimizers.SGD(0.01, clipnorm=1e-4), classes,
        ),
        "clipped, momentum": (
            chain(dense(64, "relu"), dense(10, "softmax")),
            optimizers.SGD(0.1, momentum=0.9, clipnorm=1.0), classes,
        ),
        "clipped adam": (
            chain(dense(64, "relu"), dense(10, "softmax")),
            optimizers.Adam(0.01, clipnorm=1e-4), classes,
        ),
        "normalized": (
            chain(
                dense(16), layers.BatchNormalization(), layers.Activation("relu"),
                dense(3, "softmax"), shape=(4,),
            ),
            "adam", classes,
        ),
        "normalized pictures": (
            chain(
                layers.Conv2D(8, 3), layers.BatchNormalization(), layers.ReLU(), layers.Flatten(),
                dense(3, "softmax"), shape=(8, 8, 1),
            ),
            "adam", classes,
        ),
        "linear": (
            chain(dense(32), layers.Dropout(0.1), dense(32), dense(1, "sigmoid"), shape=(2,)),
            "adam", "binary_crossentropy",
        ),
        "linear regression": (chain(dense(8), dense(1), shape=(2,)), "adam", "mse"),
        "words": (
            chain(
                layers.Embedding(50, 8), layers.GlobalAveragePooling1D(), dense(8),
                dense(1, "sigmoid"), shape=(20,),
            ),
            "adam", "binary_crossentropy",
        ),
        "hidden softmax": (
            chain(dense(64, "softmax"), dense(10, "softmax")), "adam", classes
        ),
        "softmax over the batch": (
            chain(dense(64, "relu"), dense(10), layers.Softmax(axis=0)), "adam", classes
        ),
        "nearly all dropped": (
            chain(dense(64, "relu"), layers.Dropout(0.95), dense(10, "softmax")), "adam", classes
        ),
        "relu output": (chain(dense(32, "relu"), dense(1, "relu")), "adam", "mse"),
        "sigmoid output": (chain(dense(32, "relu"), dense(64, "sigmoid")), "adam", "mse"),
        "sigmoids": (chain(*sigmoids, dense(10, "softmax")), "sgd", classes),
        "summed": (
            chain(dense(64, "relu"), dense(10, "softmax")), "sgd",
            losses.SparseCategoricalCrossentropy(reduction="sum"),
        ),
        "summed, adam": (
            chain(dense(64, "relu"), dense(10, "softmax")), "adam",
            losses.SparseCategoricalCrossentropy(reduction="sum"),
        ),
        "penalized": (
            chain(dense(64, "relu", kernel_regularizer=keras.regularizers.L2(1.0)),
                  dense(10, "softmax")),
            "adam", classes,
        ),
        "outputs penalized": (
            chain(dense(64, "relu", activity_regularizer="l1"), dense(10, "softmax")),
            "adam", classes,
        ),
    }  # fmt: skip
    made = {}
    for name, (model, optimizer, loss) in built.items():
        model.compile(optimizer, loss)
        made[name] = json.loads(model.to_json())
    return made


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(_made(), separators=(",", ":")) + "\n", "utf-8")
