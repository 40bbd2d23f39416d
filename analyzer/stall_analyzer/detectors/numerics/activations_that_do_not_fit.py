"""Activations and dropout of which only the loss tells whether they suit the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stall_analyzer.model.findings import Change
from stall_analyzer.signals.numerics.learned import stopped_for_good
from stall_analyzer.signals.signals import Signals

# How far apart two numbers can be that an activation puts out.
WIDTH = {"sigmoid": 1.0, "hard_sigmoid": 1.0, "softmax": 1.0, "tanh": 2.0, "softsign": 2.0}
RANGE = {1.0: "0 and 1", 2.0: "-1 and 1"}
# What these losses can be at most, if the targets are as far apart: the width to this power.
POWER = {"mean_squared_error": 2, "mean_absolute_error": 1, "huber": 1, "log_cosh": 1}
MOST_DROPPED = 0.9
DROPS = frozenset({"Dropout", "SpatialDropout1D", "SpatialDropout2D", "AlphaDropout"})


@dataclass(frozen=True)
class Mismatch:
    """A loss, an activation or a layer that does not fit the rest."""

    title: str
    why: str
    change: Change
    # "impossible": lost whatever the loss says; "wrong": lost if the run stands still, and bad if
    # not; "suspect": lost if the run stands still; "odd": works
    kind: str


def out_of_range(signals: Signals) -> Mismatch | None:
    """The loss proves that the targets are not what the last activation can put out."""
    learning, settings = signals.learning, signals.learning.settings
    output, power = settings.output, POWER.get(settings.loss or "")
    if output is None or power is None or not len(learning.epoch_losses):
        return None
    layer = f"the last layer ({output.name})"
    if output.activation == "relu" and stopped_for_good(learning):
        return Mismatch(
            f"relu in {layer} puts out nothing but zeros",
            "The loss is the same to its last digits in epoch after epoch: no gradient comes "
            "through. relu has none below zero, and that is where targets below zero drive it.",
            _without(output.activation),
            "wrong",
        )
    width = WIDTH.get(output.activation or "")
    best = float(learning.epoch_losses.min())
    if width is None or not settings.averaged or signals.stored_layers.penalty != 0:
        return None
    if not best > width**power:
        return None
    return Mismatch(
        f"{output.activation} in {layer} cannot reach the targets",
        f"It puts out numbers between {RANGE[width]}. If the targets were there, too, "
        f"{settings.loss} could be {width**power:.3g} at most; it is {best:.3g} and more.",
        _without(str(output.activation)),
        "impossible",
    )


def in_hidden_layers(signals: Signals) -> Mismatch | None:
    layers = signals.stored_layers
    softmax = [layer for layer in layers.hidden if layer.activation == "softmax"]
    if softmax and layers.is_chain:
        return Mismatch(
            f"softmax in {softmax[0].name}, which is a hidden layer",
            "Its units share a sum of 1: one of many is large, the others are next to nothing, and "
            "so are their gradients.",
            Change(
                "Use relu in hidden layers.",
                f'keras.layers.{softmax[0].kind}(units, activation="softmax")',
                f'keras.layers.{softmax[0].kind}(units, activation="relu")',
            ),
            "suspect",
        )
    dropped = [(share, layer) for layer in layers.all if (share := _dropped(layer)) is not None]
    if not dropped:
        return None
    share, layer = max(dropped, key=lambda found: found[0])
    return Mismatch(
        f"{layer.get('name')} drops {share:.0%} of its inputs",
        "The argument of Dropout is the share that is dropped, not the one that is kept. With so "
        "few left, each step trains another model.",
        Change(
            "Drop less: 0.1 to 0.5 are usual.",
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


def _without(activation: str) -> Change:
    return Change(
        "Take the activation off the last layer, and scale the targets.",
        f'keras.layers.Dense(units, activation="{activation}")',
        "keras.layers.Dense(units)",
    )
