"""The vector that a measured step leaves behind, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stall_analyzer.capture_format import Tag

# The vector begins with these, then come the PER_LAYER values, each for all layers.
HEAD = ("number", "has_loss", "loss", "learning_rate", "loss_scale", "skipped")
PER_LAYER = ("gradient_square", "change_square", "weight_square", "dead")
NOT_MEASURED = -1.0  # of everything but the loss, which may have any value


@dataclass(frozen=True)
class Reading:
    number: int  # how many steps had gone through the probe, this one included
    values: dict[str, float]  # scalars by tag; what is no number was no number in the step


def vector_length(layers: int) -> int:
    return len(HEAD) + layers * len(PER_LAYER)


def read_vector(vector: Sequence[float], layers: Sequence[str], updates_each_step: bool) -> Reading:
    """`updates_each_step`: a step that changed nothing did so for want of an update, otherwise
    because the update was put off or skipped, and then it has no ratio."""
    numbers = [float(number) for number in vector]
    head = dict(zip(HEAD, numbers, strict=False))
    columns = [iter(numbers[len(HEAD) + i * len(layers) :]) for i in range(len(PER_LAYER))]
    rows = dict(zip(layers, zip(*columns, strict=False), strict=False))
    values = {Tag.LOSS: head["loss"]} if head["has_loss"] else {}
    for tag, name in (
        (Tag.LEARNING_RATE, "learning_rate"),
        (Tag.LOSS_SCALE, "loss_scale"),
        (Tag.SKIPPED_UPDATES, "skipped"),
    ):
        if head[name] != NOT_MEASURED:
            values[tag] = head[name]
    squares = [square for square, *_ in rows.values() if square != NOT_MEASURED]
    if squares:
        values[Tag.GRADIENT_NORM] = math.sqrt(sum(squares))
    was_updated = updates_each_step or any(change > 0 for _, change, *_ in rows.values())
    for layer, (gradient, change, weight, dead) in rows.items():
        if gradient != NOT_MEASURED:
            values[Tag.GRADIENT_NORM_OF + layer] = math.sqrt(gradient)
        if was_updated and weight > 0:
            values[Tag.UPDATE_RATIO_OF + layer] = math.sqrt(change / weight)
        if dead != NOT_MEASURED:
            values[Tag.DEAD_UNITS_OF + layer] = dead
    return Reading(int(head["number"]), values)
