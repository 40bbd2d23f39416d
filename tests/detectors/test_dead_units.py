"""Dead units, from debugger dumps and from histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.align.align import align
from stall_analyzer.detectors.numerics import dead_units
from stall_analyzer.model.event_log import HistogramSums, KerasConfig
from stall_analyzer.model.findings import Finding
from tests.detectors.logged_losses import events, falling
from tests.detectors.test_dumps import checked
from tests.detectors.training import found, signals_for
from tests.dumps import Dump

# ---------------------------------------------------------------- from a dump


def rectifier(*zeros: int, kind: str = "Relu") -> Dump:
    dump = Dump().op(kind, "model/dense_1/Relu", "x")
    for count in zeros:
        dump.tensor("model/dense_1/Relu", size=1000, zero=count)
    return dump


@pytest.mark.parametrize(
    ("zeros", "expected"),
    [
        ([500] * 40, None),
        ([900] * 40, None),
        ([980] * 40, None),
        ([995] * 40, "note"),
        ([1000] * 19, None),
        ([500] * 5 + [1000] * 30, "consider"),
        ([1000] * 30 + [500], None),
        ([1000, 1000, 990] * 20, "note"),
    ],
)
def test_dead_units(tmp_path: Path, zeros: list[int], expected: str | None) -> None:
    finding = checked(dead_units, rectifier(*zeros), tmp_path)
    assert (finding.severity if finding else None) == expected
    if finding is not None:
        assert "model/dense_1" in finding.title


def test_dead_units_and_a_loss_that_stands_still(tmp_path: Path) -> None:
    dead = rectifier(*[1000] * 60)
    still, falls = events(*[[2.3] * 60] * 2), events(falling(2.3, 0.5), falling(0.5, 0.2))
    assert found(checked(dead_units, dead, tmp_path, still), "act")
    assert found(checked(dead_units, dead, tmp_path, falls), "consider")


def test_zeros_of_other_ops_are_no_dead_units(tmp_path: Path) -> None:
    assert checked(dead_units, rectifier(*[1000] * 40, kind="ZerosLike"), tmp_path) is None


def test_the_graph_that_ran_most_speaks_for_the_layer(tmp_path: Path) -> None:
    dump = rectifier(*[500] * 60).op("Relu", "model/dense_1/Relu", graph="validation")
    for _ in range(30):
        dump.tensor("model/dense_1/Relu", graph="validation", size=10, zero=10)
    assert checked(dead_units, dump, tmp_path) is None


# ---------------------------------------------------------------- from histograms

MOVES = HistogramSums(records=9, same_run=1)
STILL = HistogramSums(records=9, same_run=9)
ZEROS = HistogramSums(records=9, zero_run=9, same_run=9)


def layers(**trainable: bool) -> KerasConfig:
    config = ({"name": name, "trainable": value} for name, value in trainable.items())
    return KerasConfig(0, "Sequential", tuple(config))


def histograms(
    keras: KerasConfig | None = None, epochs: Sequence[Sequence[float]] = (), **sums: HistogramSums
) -> Finding | None:
    named = {tag.replace("__", "/"): value for tag, value in sums.items()}
    log = replace(events(*epochs), keras=keras, histograms=named)
    return dead_units.check(signals_for(align([], log)))


def test_weights_that_stand_still_while_others_move() -> None:
    finding = histograms(
        layers(hidden=True, head=True),
        model__hidden__kernel__histogram=STILL,
        model__head__kernel__histogram=STILL,
        model__head__bias__histogram=MOVES,
    )
    assert found(finding, "consider").title == "The weights of hidden and head no longer change"


def test_weights_that_stand_still_while_the_loss_does_too() -> None:
    still: dict[str, Any] = {
        "keras": layers(a=True),
        "a__kernel__histogram": STILL,
        "a__bias__histogram": MOVES,
    }
    assert found(histograms(epochs=[[9.0] * 9] + [[1.6] * 9] * 8, **still), "act")
    assert found(histograms(epochs=[[2.0 - n / 9] * 9 for n in range(9)], **still), "consider")


@pytest.mark.parametrize(
    ("keras", "kernel", "other"),
    [
        (layers(a=False), STILL, MOVES),  # frozen
        (layers(a=True), STILL, STILL),  # nothing is trained
        (layers(a=True), HistogramSums(9, same_run=4), MOVES),
        (layers(a=True), MOVES, MOVES),
        (None, STILL, MOVES),  # it is not known to be trainable
    ],
)
def test_weights_that_may_stand_still(
    keras: KerasConfig | None, kernel: HistogramSums, other: HistogramSums
) -> None:
    assert histograms(keras, a__kernel__histogram=kernel, b__bias__histogram=other) is None


@pytest.mark.parametrize(
    ("tag", "sums", "expected"),
    [
        ("layer1__relu", ZEROS, True),
        ("activations__conv", ZEROS, True),
        ("layer1__relu", HistogramSums(9, zero_run=4), False),
        ("layer1__relu", MOVES, False),
        ("gradients__relu", ZEROS, False),
        ("activation_layer__bias", ZEROS, False),
        ("layer1__x", ZEROS, False),
    ],
)
def test_activations_that_are_all_zero(tag: str, sums: HistogramSums, expected: bool) -> None:
    assert (histograms(None, (), **{tag: sums}) is not None) == expected
