"""Which weights of a model are watched, and how they are sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from tb_stall_plugin.capture.training.watched_layers import (
    MOST_LAYERS,
    SAMPLE,
    WatchedLayer,
    choose,
)


@dataclass
class Weight:
    path: str
    shape: tuple[int, ...]
    dtype: str = "float32"


def chosen(*weights: Weight) -> list[tuple[str, int, int | None]]:
    found = choose(weights, ["gradient"] * len(weights))
    return [(watched.layer, watched.weight, watched.bias) for watched in found]


def test_the_largest_weight_and_the_bias_of_each_layer_are_watched() -> None:
    assert chosen(
        Weight("lstm/cell/kernel", (8, 64)),
        Weight("lstm/cell/recurrent_kernel", (16, 64)),
        Weight("lstm/cell/bias", (64,)),
        Weight("out/kernel", (16, 1)),
    ) == [("lstm/cell", 1, 2), ("out", 3, None)]


def test_the_name_of_the_model_is_left_out_of_the_names_of_its_layers() -> None:
    kernels = [Weight("net/a/kernel", (2, 2)), Weight("net/b/kernel", (2, 2))]
    assert [layer for layer, *_ in chosen(*kernels)] == ["a", "b"]
    assert [layer for layer, *_ in chosen(kernels[0])] == ["a"]
    assert [layer for layer, *_ in chosen(Weight("a/kernel:0", (2, 2)))] == ["a"]


def test_normalization_is_watched_only_if_there_is_nothing_else() -> None:
    scale, kernel = Weight("norm/gamma", (8,)), Weight("dense/kernel", (8, 8))
    assert [layer for layer, *_ in chosen(scale, kernel)] == ["dense"]
    assert [layer for layer, *_ in chosen(scale)] == ["norm"]


def test_weights_without_a_gradient_or_without_numbers_are_left_out() -> None:
    kernel = Weight("a/kernel", (2, 2))
    assert choose([kernel], [None]) == []
    assert chosen(Weight("a/state", (2, 2), "int64"), Weight("b/empty", (0, 2))) == []


def test_if_there_are_many_layers_the_watched_ones_are_spread_evenly() -> None:
    found = chosen(*(Weight(f"layer{i}/kernel", (2, 2)) for i in range(300)))
    assert len(found) == MOST_LAYERS
    assert (found[0][0], found[-1][0]) == ("layer0", "layer299")


@pytest.mark.parametrize("shape", [(3, 3, 512, 512), (1000, 64), (4096, 4096), (5000, 7)])
def test_a_sample_visits_every_output_unit(shape: tuple[int, ...]) -> None:
    stride = WatchedLayer("layer", 0, None, shape, shape[-1], is_sparse=False).stride
    units = {i * stride % shape[-1] for i in range(SAMPLE)}
    assert len(units) == min(shape[-1], SAMPLE)
    assert SAMPLE * stride <= math.prod(shape)
