"""Layers that do not fit the rest of the model: a part of ST307."""

from __future__ import annotations

from collections.abc import Mapping

from stall_analyzer.detectors.numerics.mismatch import Mismatch
from stall_analyzer.model.findings import Change
from stall_analyzer.signals.numerics.learned import stopped_for_good
from stall_analyzer.signals.numerics.stored_layers import StoredLayers
from stall_analyzer.signals.signals import Signals

# Regression losses, whose targets may have any sign.
OF_NUMBERS = frozenset({"mean_squared_error", "mean_absolute_error", "huber", "log_cosh"})
MOST_DROPPED = 0.9
DROPS = frozenset({"Dropout", "SpatialDropout1D", "SpatialDropout2D", "AlphaDropout"})


def misfit(signals: Signals) -> Mismatch | None:
    layers = signals.stored_layers
    return (
        _over_the_batch(layers)
        or _zero_for_good(signals)
        or _hidden_softmax(layers)
        or _mostly_dropped(layers)
    )


def _over_the_batch(layers: StoredLayers) -> Mismatch | None:
    """Axis 0 is the batch, whatever the shape of an example."""
    wrong = [
        layer
        for layer in layers.all
        if layer.get("class_name") == "Softmax" and layer.get("axis") in (0, [0])
    ]
    if not wrong:
        return None
    return Mismatch(
        f"{wrong[0].get('name')} is a softmax over the batch, not over the classes",
        "With axis=0, the outputs of all examples in a batch are divided by their sum. The answer "
        "for one example depends on the others in the batch, and in a batch of one it is always 1.",
        Change(
            "Use the last axis, which is the default.",
            before="keras.layers.Softmax(axis=0)",
            after="keras.layers.Softmax()",
        ),
        "wrong",
    )


def _zero_for_good(signals: Signals) -> Mismatch | None:
    learning, settings = signals.learning, signals.learning.settings
    if settings.output is None or settings.output.activation != "relu":
        return None
    if settings.loss not in OF_NUMBERS or not stopped_for_good(learning):
        return None
    return Mismatch(
        f"relu in the last layer ({settings.output.name}) outputs nothing but zeros",
        "The loss is the same to the last digit, epoch after epoch: no gradient gets through. relu "
        "has no gradient below zero, and targets below zero drive its inputs there.",
        Change(
            "Remove the activation from the last layer.",
            before='keras.layers.Dense(units, activation="relu")',
            after="keras.layers.Dense(units)",
        ),
        "wrong",
    )


def _hidden_softmax(layers: StoredLayers) -> Mismatch | None:
    """Only in a chain of layers: elsewhere it may be the gate or the attention of a branch."""
    softmax = [layer for layer in layers.hidden if layer.activation == "softmax"]
    if not softmax or not layers.is_chain:
        return None
    return Mismatch(
        f"{softmax[0].name} has softmax but is a hidden layer",
        "The outputs of its units add up to 1: one of them is large, the others are almost 0, and "
        "so are their gradients.",
        Change(
            "Use relu in hidden layers.",
            f'keras.layers.{softmax[0].kind}(units, activation="softmax")',
            f'keras.layers.{softmax[0].kind}(units, activation="relu")',
        ),
        "suspect",
    )


def _mostly_dropped(layers: StoredLayers) -> Mismatch | None:
    dropped = [(share, layer) for layer in layers.all if (share := _dropped(layer)) is not None]
    if not dropped:
        return None
    share, layer = max(dropped, key=lambda found: found[0])
    return Mismatch(
        f"{layer.get('name')} drops {share:.0%} of its inputs",
        "The argument of Dropout is the share that is dropped, not the share that is kept. With "
        "so few inputs left, each step trains a different model.",
        Change(
            "Drop less: 0.1 to 0.5 is usual.",
            f"keras.layers.Dropout({share:.3g})",
            f"keras.layers.Dropout({1 - share:.3g})",
        ),
        "odd",
    )


def _dropped(layer: Mapping[str, object]) -> float | None:
    rate = layer.get("rate")
    if layer.get("class_name") not in DROPS or not isinstance(rate, (int, float)):
        return None
    return float(rate) if rate >= MOST_DROPPED else None
