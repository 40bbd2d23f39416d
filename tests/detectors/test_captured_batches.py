"""What a look at batches and weights makes certain: each detector on its case and a near miss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.captures.capture_records import ModelRecord, WeightsRecord
from stall_analyzer.detectors.numerics import (
    constant_input,
    constant_labels,
    frozen,
    labels_do_not_fit,
    no_gradients,
    not_shuffled,
    wrong_shape,
)
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from tests.captures import NS, START_NS
from tests.detectors.logged_losses import checked, model, scalars, severity
from tests.detectors.test_captured import EPOCH_S, LAYERS, MEASURED, at_steps, captured, norms
from tests.detectors.training import found, signals_for

COUNT = len(MEASURED)
CLASSIFIER = model(units=10)


def looked(
    losses: float | Any = 2.3, keras: KerasConfig | None = CLASSIFIER, **numbers: float | Any
) -> EventLog:
    """Three epochs; `__` in the name of a number means a slash."""
    usual: dict[str, Any] = {
        "rows": 32,
        "inputs__not_finite": 0.0,
        "inputs__smallest": -2.0,
        "inputs__largest": 2.0,
        "inputs__constant": 0.0,
        "labels__not_finite": 0.0,
        "labels__smallest": 0.0,
        "labels__largest": 9.0,
        "labels__spread": 3.0,
        "labels__mean": 4.5,
        "labels__seen": 32.0 * COUNT,
        "labels__kinds": 10.0,
        "labels__entropy": 2.3,
        "labels__variance": 8.0,
        "labels__within": 1.0,
    }
    values = {f"batch/{name.replace('__', '/')}": v for name, v in (usual | numbers).items()}
    series = {tag: at_steps(np.broadcast_to(v, COUNT)) for tag, v in values.items()}
    series["loss"] = at_steps(np.broadcast_to(losses, COUNT))
    return replace(captured(series, epochs=3, epoch_loss=epochs(losses)), keras=keras)


def epochs(losses: float | Any) -> Series:
    last = np.broadcast_to(losses, COUNT)[-3:]
    return Series(np.arange(3), START_NS + np.arange(1, 4) * EPOCH_S * NS, np.asarray(last, float))


FALLING = 2.3 * 0.9 ** np.arange(COUNT)


@pytest.mark.parametrize(("losses", "expected"), [(2.3, "act"), (FALLING, "note")])
def test_inputs_without_a_difference_are_loud_where_nothing_is_learned(
    losses: Any, expected: str
) -> None:
    same: dict[str, Any] = {
        "inputs__constant": 1.0,
        "inputs__smallest": 0.0,
        "inputs__largest": 0.0,
    }
    finding = found(checked(constant_input, looked(losses, **same)), expected)
    assert finding.title == "All inputs are 0"


def test_some_constant_features_are_usual() -> None:
    assert checked(constant_input, looked(inputs__constant=0.9)) is None
    alone = looked(inputs__constant=1.0, rows=1)
    assert checked(constant_input, alone) is None


def test_nan_among_the_inputs_is_named_with_its_step() -> None:
    share = np.where(np.arange(COUNT) >= 5, 0.01, 0.0)
    finding = found(checked(constant_input, looked(FALLING, inputs__not_finite=share)), "consider")
    assert "step 6" in finding.title


def test_labels_of_one_class_are_nothing_to_learn_from() -> None:
    same: dict[str, Any] = {"labels__kinds": 1.0, "labels__smallest": 3.0, "labels__largest": 3.0}
    assert severity(constant_labels, looked(0.0, **same)) == "act"
    placeholder = looked(0.0, keras=model(loss="<lambda>"), **same)
    assert severity(constant_labels, placeholder) == "note"
    assert checked(constant_labels, looked()) is None


def test_a_run_of_one_epoch_may_have_placeholders_for_labels() -> None:
    log = looked(0.01, labels__kinds=1.0, labels__spread=0.0, labels__mean=0.0)
    one = {**log.train, "epoch_loss": scalars([0.01], EPOCH_S, EPOCH_S)}
    assert severity(constant_labels, replace(log, train=one)) == "note"


def test_labels_at_the_begin_of_an_epoch_do_not_speak_for_all_of_it() -> None:
    log = looked(0.0, labels__kinds=1.0)
    [capture] = log.captures
    few = {
        tag: Series(s.step[:16], s.wall_ns[:16], s.value[:16]) for tag, s in capture.series.items()
    }
    marks = tuple(replace(m, step=400) if m.what == "epoch_end" else m for m in capture.marks)
    early = replace(log, captures=(replace(capture, series=few, marks=marks),))
    assert checked(constant_labels, early) is None


def test_ordered_labels_are_a_note_while_the_loss_falls() -> None:
    assert severity(not_shuffled, looked(FALLING, labels__within=0.01)) == "note"
    assert severity(not_shuffled, looked(2.3, labels__within=0.01)) == "consider"
    assert checked(not_shuffled, looked(labels__within=0.6)) is None
    assert checked(not_shuffled, looked(labels__within=0.01, rows=4)) is None


def test_fit_that_was_told_not_to_shuffle_is_told_to() -> None:
    log = looked(labels__within=0.0)
    [capture] = log.captures
    record = ModelRecord(optimizer="Adam", layers=LAYERS, probed=True, shuffle=False)
    log = replace(log, captures=(replace(capture, models=(record,)),))
    assert "shuffle=False" in found(checked(not_shuffled, log), "consider").change.before


def shapes(by_row: float, each: float) -> dict[str, Any]:
    absolutes = {"shape__absolute": 70.0, "shape__absolute_broadcast": 80.0}
    return {"shape__squares": by_row, "shape__squares_broadcast": each, **absolutes}


def test_a_loss_of_all_pairs_is_proof() -> None:
    assert severity(wrong_shape, looked(1.0, **shapes(0.4, 1.0))) == "act"
    assert checked(wrong_shape, looked(0.4, **shapes(0.4, 1.0))) is None
    assert checked(wrong_shape, looked(0.7, **shapes(0.4, 1.0))) is None


def regression(activation: str) -> KerasConfig:
    return model(loss="MeanSquaredError", units=1, activation=activation)


@pytest.mark.parametrize(
    ("activation", "smallest", "largest", "mean", "expected"),
    [
        ("sigmoid", 5.0, 50.0, 20.0, "act"),
        ("sigmoid", 0.0, 1.01, 0.5, None),
        ("sigmoid", 0.0, 1.5, 0.5, "note"),
        ("tanh", -30.0, 40.0, 2.0, "act"),
        ("relu", -3.0, -1.0, -2.0, "act"),
        ("relu", 0.0, 300.0, 100.0, None),
        ("linear", -300.0, 300.0, 0.0, None),
    ],
)
def test_labels_out_of_reach(
    activation: str, smallest: float, largest: float, mean: float, expected: str | None
) -> None:
    labels = {"labels__smallest": smallest, "labels__largest": largest, "labels__mean": mean}
    log = looked(0.5 * FALLING, regression(activation), **labels)
    assert severity(labels_do_not_fit, log) == expected


def test_classes_without_a_unit_are_out_of_reach() -> None:
    assert severity(labels_do_not_fit, looked(FALLING, labels__largest=10.0)) == "act"
    assert checked(labels_do_not_fit, looked(FALLING)) is None


@pytest.mark.parametrize(
    ("keras", "expected"),
    [
        (CLASSIFIER, 2.3),
        (model(loss="MeanSquaredError", units=1), 8.0),
        (model(loss="<lambda>"), None),
        (None, None),
    ],
)
def test_what_a_constant_answer_costs(keras: KerasConfig | None, expected: float | None) -> None:
    batches = signals_for(align([], looked(keras=keras))).batches
    assert batches is not None
    assert batches.baseline == expected


def with_weights(losses: float | Any = 2.3, **fields: Any) -> EventLog:
    log = looked(losses)
    [capture] = log.captures
    record = WeightsRecord(ns=START_NS + NS, steps=100, layers=LAYERS, updates=100)
    series = {**capture.series, **norms(0.1, 0.1, 0.1)}
    weights = (replace(record, **fields),)
    return replace(log, captures=(replace(capture, series=series, weights=weights),))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"updates": 0}, "never applied"),
        ({"not_given": LAYERS}, "variables that are not the model's"),
        ({"no_gradient": LAYERS}, "no gradient"),
        ({}, "too small"),  # and the loss is that of a constant answer
    ],
)
def test_a_model_that_stands_still_is_told_why(fields: dict[str, Any], why: str) -> None:
    finding = found(checked(frozen, with_weights(still=LAYERS, **fields)), "act")
    assert why in finding.explanation


def test_a_model_that_has_learned_all_there_is_may_stand_still() -> None:
    assert severity(frozen, with_weights(0.001, still=LAYERS)) == "note"


def test_weights_that_move_or_had_no_time_to_are_sound() -> None:
    assert checked(frozen, with_weights()) is None
    assert checked(frozen, with_weights(still=("first",))) is None  # dead, maybe, but not left out
    assert checked(frozen, with_weights(still=LAYERS, steps=5)) is None


@pytest.mark.parametrize(("losses", "expected"), [(2.3, "consider"), (FALLING, "note")])
def test_layers_that_are_left_out_matter_where_nothing_is_learned(
    losses: Any, expected: str
) -> None:
    some = ("first",)
    assert severity(frozen, with_weights(losses, still=some, not_given=some)) == expected
    assert severity(no_gradients, with_weights(losses, still=some, no_gradient=some)) == expected
