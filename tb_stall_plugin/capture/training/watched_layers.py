"""Which weights of a model the probe looks at: the largest of each layer, and its bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

MOST_LAYERS = 64  # enough to see where gradients vanish; each costs about ten ops in the graph
SAMPLE = 1024  # elements of a weight that are compared before and after its update


@dataclass(frozen=True)
class WatchedLayer:
    """One layer. Weights are given by their index among the trainable variables."""

    layer: str
    weight: int
    bias: int | None
    shape: tuple[int, ...]
    units: int  # that a gradient can tell apart; 0 if it cannot
    is_sparse: bool  # an embedding: its gradient has only the rows that were used

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def stride(self) -> int:
        """Between sampled elements, such that they visit every output unit, not just a few."""
        stride = max(self.size // SAMPLE, 1)
        while math.gcd(stride, self.shape[-1]) > 1 and stride > 1:
            stride -= 1
        return stride

    def sampled(self) -> range:
        """The indices of the sample in the flattened weight."""
        return range(0, self.size, self.stride)[:SAMPLE]


def choose(variables: Sequence[Any], gradients: Sequence[Any]) -> list[WatchedLayer]:
    """The layers to watch, in the order of the model, spread evenly if there are too many."""
    layers: dict[str, list[int]] = {}
    for index, variable in enumerate(variables):
        if gradients[index] is not None and _is_real(variable):
            layers.setdefault(layer_path(variable), []).append(index)
    found = [_watched(name, members, variables, gradients) for name, members in layers.items()]
    # Scales and offsets of normalization say little: they count only if there is nothing else.
    found = [w for w in found if len(w.shape) >= 2] or [w for w in found if w.shape]
    shared = _shared_prefix([w.layer for w in found])
    named = [replace(watched, layer=watched.layer[shared:]) for watched in found]
    if len(named) <= MOST_LAYERS:
        return named
    last = len(named) - 1
    return [named[round(i * last / (MOST_LAYERS - 1))] for i in range(MOST_LAYERS)]


def _is_real(variable: Any) -> bool:
    """Whether it consists of floats, has a known shape, and is not empty."""
    shape = tuple(variable.shape)
    return "float" in str(variable.dtype) and None not in shape and math.prod(shape) > 0


def _path(variable: Any) -> str:
    """`layer/kernel`: Keras 3 has it as the path, Keras 2 in the name."""
    return str(getattr(variable, "path", None) or variable.name).partition(":")[0]


def layer_path(variable: Any) -> str:
    """The path of its layer, with the name of the model if Keras has that."""
    path = _path(variable)
    return path.rpartition("/")[0] or path


def _watched(
    layer: str, members: Sequence[int], variables: Sequence[Any], gradients: Sequence[Any]
) -> WatchedLayer:
    weight = max(members, key=lambda index: _size(variables[index]))
    biases = (i for i in members if i != weight and _path(variables[i]).endswith("/bias"))
    bias = next(biases, None)
    shape = tuple(map(int, variables[weight].shape))
    is_sparse = hasattr(gradients[weight], "indices")
    if bias is not None:
        units = _size(variables[bias])
    else:  # the last axis, but not for an embedding or a depthwise convolution
        units = shape[-1] if not is_sparse and len(shape) >= 2 and shape[-1] >= 2 else 0
    return WatchedLayer(layer, weight, bias, shape, units, is_sparse)


def _size(variable: Any) -> int:
    return math.prod(map(int, variable.shape))


def _shared_prefix(layers: Sequence[str]) -> int:
    """The length of the model's own name, if all names of layers begin with it."""
    first = {layer.partition("/")[0] for layer in layers}
    if len(first) != 1 or not all("/" in layer for layer in layers):
        return 0
    return len(first.pop()) + 1
