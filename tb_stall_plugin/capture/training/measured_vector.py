"""The vector that a measured step leaves behind, and what it says.

It begins with the head. For each layer, half the sum of squares of its weight's gradient follows.
Then, for each layer whose units are counted, it has the number of units with a gradient of exactly
zero, in this layer and all before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stall_analyzer.captures.capture_format import Tag
from tb_stall_plugin.capture.training.watched_layers import WatchedLayer

NOT_MEASURED = -1.0


class VectorHead(NamedTuple):
    number: float  # of the measured step
    loss_scale: float
    factor: float  # by which gradients are too large: the loss scale, or a replica's share


def vector_length(layers: Sequence[WatchedLayer]) -> int:
    return len(VectorHead._fields) + len(layers) + sum(watched.units > 0 for watched in layers)


def head_of(vector: Sequence[float]) -> VectorHead:
    return VectorHead(*vector[: len(VectorHead._fields)])


def scalars_of(vector: Sequence[float], layers: Sequence[WatchedLayer]) -> dict[str, float]:
    """Scalars by tag. A value that is NaN was NaN in the step."""
    head = head_of(vector)
    values: dict[str, float] = {}
    if head.loss_scale != NOT_MEASURED:
        values[Tag.LOSS_SCALE] = head.loss_scale
    rest = iter(vector[len(VectorHead._fields) :])
    total = 0.0
    for watched, half in zip(layers, rest, strict=False):
        if half != NOT_MEASURED:
            square = 2 * half / head.factor**2
            total += square
            values[Tag.GRADIENT_NORM_OF + watched.layer] = math.sqrt(square)
    values[Tag.GRADIENT_NORM] = math.sqrt(total)
    zeros_before = 0.0
    for watched in layers:
        if watched.units:
            zeros = next(rest)
            values[Tag.DEAD_UNITS_OF + watched.layer] = (zeros - zeros_before) / watched.units
            zeros_before = zeros
    return values


Gradient = npt.NDArray[Any]


def vector_of(
    head: VectorHead,
    layers: Sequence[WatchedLayer],
    weights: Sequence[Gradient | None],
    biases: Sequence[Gradient | None],
) -> list[float]:
    """The same vector, computed from gradients after the step."""
    with np.errstate(all="ignore"):  # NaN gradients are not ours to warn about
        halves = [NOT_MEASURED if g is None else _half_square(g) for g in weights]
        zeros = [
            _zeros(watched, weight, bias)
            for watched, weight, bias in zip(layers, weights, biases, strict=True)
            if watched.units
        ]
    return [*head, *halves, *itertools.accumulate(zeros)]


def _half_square(gradient: Gradient) -> float:
    return float(np.square(gradient, dtype=np.float32).sum()) / 2


def _zeros(watched: WatchedLayer, of_weight: Gradient | None, of_bias: Gradient | None) -> float:
    """How many units have learned nothing from the batch."""
    if of_bias is not None:
        return float(of_bias.size - np.count_nonzero(of_bias))
    if of_weight is None:
        return 0.0
    axes = tuple(range(len(watched.shape) - 1))
    return float(watched.units - np.count_nonzero(of_weight.any(axis=axes)))


def update_ratios(
    squares: Iterable[tuple[float, float]], layers: Sequence[WatchedLayer]
) -> dict[str, float]:
    """Ratios by tag, from the squares of the changes and of the weights before."""
    return {
        Tag.UPDATE_RATIO_OF + watched.layer: math.sqrt(change / weight)
        for watched, (change, weight) in zip(layers, squares, strict=True)
        if weight > 0
    }
