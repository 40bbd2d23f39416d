"""The origin of a NaN, from debugger dumps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stall_analyzer.align.align import align
from stall_analyzer.detectors.numerics import loss_not_finite, origin_of_nonfinite
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.findings import Finding
from stall_analyzer.signals.numerics.dumped_tensors import Origin, origin_of
from stall_analyzer.signals.signals import Signals
from tests.detectors.logged_losses import events
from tests.detectors.training import found, signals_for
from tests.dumps import Dump, read

INNER = "inner-graph"
LOST = events([0.5, 0.4, float("nan")], [float("nan")] * 3)


def signals_with(dump: Dump, folder: Path, log: EventLog | None = None) -> Signals:
    timeline = replace(align([], log), dump=read(dump.write(folder)))
    return signals_for(timeline)


def checked(
    detector: ModuleType, dump: Dump, folder: Path, log: EventLog | None = None
) -> Finding | None:
    finding: Finding | None = detector.check(signals_with(dump, folder, log))
    return finding


def origin(dump: Dump, folder: Path) -> Origin:
    made = origin_of(read(dump.write(folder)))
    assert made is not None
    return made


def step(dump: Dump, **bad: dict[str, Any]) -> Dump:
    """One call of the function in which these ops are bad and the others are finite."""
    for op in ("x", "w", "product", "log", "loss", "gradient"):
        dump.tensor(op, **bad.get(op, {}))
    return dump.call()


def program(mode: str = "FULL_HEALTH") -> Dump:
    """w -= gradient of the log of (w x)."""
    dump = Dump(mode).source("/home/ann/train.py", "loss = tf.math.log(w * x)", "model.fit(x)")
    dump.frame("own", 0, 1).frame("fit", 0, 2)
    dump.op("IteratorGetNext", "x").op("ReadVariableOp", "w", "handle")
    dump.op("Mul", "product", "w", "x", frames=["fit"])
    dump.op("Log", "log", "product", frames=["fit", "own"])
    dump.op("Identity", "same", "log").op("Sum", "loss", "same")  # never dumped
    dump.op("RealDiv", "gradient", "loss", "product")
    return dump.op("AssignSubVariableOp", "update", "handle", "gradient")


NAN: dict[str, Any] = {"nan": 1}
INF: dict[str, Any] = {"inf": 1}
FROM_LOG = {"log": INF, "loss": INF, "gradient": NAN}
EVERYTHING = dict.fromkeys(("w", "product", "log", "loss", "gradient"), NAN)


def test_the_op_that_made_the_first_bad_value_is_named_with_its_line(tmp_path: Path) -> None:
    dump = step(step(step(program()), **FROM_LOG), **EVERYTHING)
    finding = found(checked(origin_of_nonfinite, dump, tmp_path), "act")
    assert finding.title == "The first infinity was produced by Log at train.py:1"
    assert finding.change.before == "loss = tf.math.log(w * x)  # train.py:1"
    assert "reached the weights" in finding.explanation


def test_the_order_of_the_records_does_not_decide(tmp_path: Path) -> None:
    dump = step(program())
    for op in ("gradient", "loss", "log", "product", "w", "x"):
        dump.tensor(op, **FROM_LOG.get(op, {}))
    assert origin(step(dump.call(), **EVERYTHING), tmp_path).name == "log"


def test_what_went_bad_in_later_steps_is_no_origin(tmp_path: Path) -> None:
    """In the next step, the weights are bad, and so is everything before the origin."""
    assert origin(step(step(program(), **FROM_LOG), **EVERYTHING), tmp_path).name == "log"


def test_without_calls_only_what_came_before_counts(tmp_path: Path) -> None:
    dump = program()
    for bad in ({}, FROM_LOG, EVERYTHING):
        step(dump, **bad)
    dump.parts["execution"].clear()
    assert origin(dump, tmp_path).name == "log"


def test_several_steps_in_one_call(tmp_path: Path) -> None:
    dump = program()
    for bad in ({}, FROM_LOG, EVERYTHING):
        for op in ("x", "w", "product", "log", "loss", "gradient"):
            dump.tensor(op, **bad.get(op, {}))
    assert origin(dump.call(), tmp_path).name == "log"


@pytest.mark.parametrize("mode", ["CURT_HEALTH", "CONCISE_HEALTH"])
def test_infinities_that_go_no_further_are_passed_over(tmp_path: Path, mode: str) -> None:
    dump = program(mode).op("SelectV2", "mask").op("Softmax", "softmax", "mask")
    for bad in ({}, {}, FROM_LOG, EVERYTHING):
        dump.tensor("mask", inf=1).tensor("softmax")
        step(dump, **bad)
    assert origin(dump, tmp_path).name == "log"


@pytest.mark.parametrize(("bad", "expected"), [(INF, None), (NAN, "note")])
def test_what_goes_no_further(tmp_path: Path, bad: dict[str, Any], expected: str | None) -> None:
    dump = program().op("SelectV2", "mask").op("Softmax", "softmax", "mask")
    for _ in range(3):
        dump.tensor("mask", **bad).tensor("softmax")
        step(dump)
    finding = checked(origin_of_nonfinite, dump, tmp_path)
    assert (finding.severity if finding else None) == expected


def test_an_infinite_constant_is_meant(tmp_path: Path) -> None:
    dump = program().op("Const", "huge").op("Minimum", "least", "x", "huge")
    assert origin_of(read(step(dump.tensor("huge", inf=1)).write(tmp_path))) is None


def test_bad_data_is_called_so(tmp_path: Path) -> None:
    dump = step(step(program()), x=NAN, **EVERYTHING | {"w": {}})
    finding = found(checked(origin_of_nonfinite, dump, tmp_path))
    assert finding.title == "The first NaN came in with the data"
    assert "filter" in finding.change.after


def inner_function(dump: Dump) -> Dump:
    """The step is a separate function, whose arguments the debugger does not look at."""
    dump.op("Placeholder", "data", graph=INNER).op("MatMul", "product", "data", "w", graph=INNER)
    dump.op("ReadVariableOp", "w", "handle", graph=INNER)
    return dump.op("AssignSubVariableOp", "update", "handle", "product", graph=INNER)


def inner_step(dump: Dump, **counts: int) -> Dump:
    return dump.tensor("w", graph=INNER).tensor("product", graph=INNER, **counts)


def test_a_map_is_named_for_data_that_the_step_itself_takes_in(tmp_path: Path) -> None:
    """In Keras 2, the iterator and the step are in one graph."""
    dump = program().op("Log", "scaled", "args_0", graph="map", graph_name="Dataset_map_scale")
    dump.tensor("args_0", graph="map").tensor("scaled", graph="map", nan=1)
    bad = EVERYTHING | {"x": NAN, "w": {}}
    assert origin(step(step(dump), **bad), tmp_path).name == "scaled"


def test_bad_data_is_found_outside_of_an_inner_function(tmp_path: Path) -> None:
    """TensorFlow writes the record of the data after those of the inner function."""
    dump = inner_function(Dump().op("IteratorGetNext", "x", "iterator"))
    for counts in ({}, NAN):
        inner_step(dump, **counts).tensor("x", **counts).call()
    assert origin(dump, tmp_path).type == "IteratorGetNext"


def test_data_that_is_fine_is_not_blamed_for_what_an_inner_function_makes(tmp_path: Path) -> None:
    dump = inner_function(Dump().op("IteratorGetNext", "x", "iterator"))
    inner_step(dump).tensor("x").call()
    made = origin(inner_step(dump, inf=1).tensor("x").call(), tmp_path)
    assert (made.type, made.inputs_seen) == ("MatMul", False)


def test_a_map_that_makes_bad_data_is_named(tmp_path: Path) -> None:
    dump = inner_function(Dump().op("IteratorGetNext", "x", "iterator"))
    dump.op("Placeholder", "args_0", graph="map", graph_name="Dataset_map_scale")
    dump.op("RealDiv", "scaled", "args_0", graph="map", graph_name="Dataset_map_scale")
    for counts in ({}, NAN):
        dump.tensor("args_0", graph="map").tensor("scaled", graph="map", **counts)
    for counts in ({}, NAN):  # the pipeline works ahead
        inner_step(dump, **counts).tensor("x", **counts).call()
    assert origin(dump, tmp_path).name == "scaled"


@pytest.mark.parametrize("kind", ["StatelessIf", None])
def test_an_origin_in_a_function_that_the_step_calls(tmp_path: Path, kind: str | None) -> None:
    """The debugger does not look at what a call returns, nor does it report all calls."""
    dump = Dump().op("Mul", "gradient", "call")
    if kind is not None:
        dump.op(kind, "call", "x")
    dump.op("AssignSubVariableOp", "update", "handle", "gradient")
    dump.op("Placeholder", "p", graph=INNER).op("Mul", "scaled", "p", graph=INNER)
    dump.op("Log", "log", "scaled", graph=INNER).op("Neg", "loss", "log", graph=INNER)
    for before, after in (({}, {}), ({}, INF), (NAN, NAN)):
        dump.tensor("scaled", graph=INNER, **before).tensor("log", graph=INNER, **after)
        dump.tensor("loss", graph=INNER, **after).tensor("gradient", **after).call()
    assert origin(dump, tmp_path).name == "log"


def test_bad_data_of_an_eager_loop(tmp_path: Path) -> None:
    dump = inner_function(Dump())
    inner_step(dump.eager("IteratorGetNext", outputs=[1])).call()
    inner_step(dump.eager("IteratorGetNext", outputs=[2], nan=1), nan=1).call()
    assert origin(dump, tmp_path).type == "IteratorGetNext"


def test_a_dump_that_begins_too_late_says_so(tmp_path: Path) -> None:
    late = step(step(program(), **EVERYTHING))
    finding = found(checked(origin_of_nonfinite, late, tmp_path), "act")
    assert finding.title == "A variable already held NaN when the debugger's dump began"
    assert "circular_buffer_size=-1" in finding.change.after


def test_a_dump_that_begins_within_a_step_says_so_too(tmp_path: Path) -> None:
    dump = program().tensor("gradient", nan=1).call()
    assert origin(step(step(dump, **EVERYTHING), **EVERYTHING), tmp_path).is_older_than_dump


def test_a_line_that_starts_the_training_is_not_blamed(tmp_path: Path) -> None:
    bad = EVERYTHING | {"w": {}}
    finding = found(checked(origin_of_nonfinite, step(step(program()), **bad), tmp_path))
    assert finding.title == "The first NaN was produced by Mul"
    assert "fit" not in finding.change.before


def test_a_gradient_is_blamed_on_the_line_of_its_op(tmp_path: Path) -> None:
    """It is found by its argument: the output of the op, or its input."""
    dump = program().op("Reciprocal", "gradient_tape/log/Reciprocal", "log", frames=["fit"])
    dump.op("AssignSubVariableOp", "update_2", "handle", "gradient_tape/log/Reciprocal")
    step(dump.tensor("gradient_tape/log/Reciprocal"))
    step(dump.tensor("gradient_tape/log/Reciprocal", inf=1))
    finding = found(checked(origin_of_nonfinite, dump, tmp_path))
    assert finding.title == "The first infinity was produced by Reciprocal at train.py:1"


def test_eager_ops_are_followed_to_the_variable(tmp_path: Path) -> None:
    dump = Dump().source("/home/ann/train.py", "scale = tf.exp(x)").frame("own", 0, 1)
    dump.eager("Exp", inputs=[1], outputs=[2], frames=["own"], inf=1)
    dump.eager("Mul", inputs=[2, 3], outputs=[4], nan=1)
    dump.eager("AssignSubVariableOp", inputs=[9, 4])
    finding = found(checked(origin_of_nonfinite, dump, tmp_path), "act")
    assert finding.title == "The first infinity was produced by Exp at train.py:1"


def test_a_metric_that_is_no_number_is_not_lost_training(tmp_path: Path) -> None:
    dump = program().op("RealDiv", "metric", "x").op("AssignAddVariableOp", "m", "handle", "metric")
    for _ in range(2):
        step(dump.tensor("metric", nan=1))
    assert found(checked(origin_of_nonfinite, dump, tmp_path), "consider")


def test_weights_are_known_by_the_layers_that_read_them(tmp_path: Path) -> None:
    """Keras 2 adds its updates, as metrics do."""
    dump = Dump().op("Log", "log", "x").op("AssignAddVariableOp", "update", "handle", "log")
    dump.op("ReadVariableOp", "w", "handle").op("MatMul", "product", "x", "w")
    for weight, counts in (({}, {}), ({}, INF), (INF, INF)):
        dump.tensor("w", **weight).tensor("product", **weight).tensor("log", **counts).call()
    made = origin(dump, tmp_path)
    assert (made.name, made.spoils) == ("log", "weights")


def test_weights_come_before_metrics(tmp_path: Path) -> None:
    dump = program().op("RealDiv", "metric", "x").op("AssignAddVariableOp", "m", "handle", "metric")
    for bad in ({}, {}, FROM_LOG, EVERYTHING):
        step(dump.tensor("metric", nan=1), **bad)
    assert origin(dump, tmp_path).name == "log"


def test_a_dump_without_its_graphs_names_the_first_bad_op(tmp_path: Path) -> None:
    dump = step(step(program()), **FROM_LOG)
    dump.parts["graphs"].clear()
    finding = found(checked(origin_of_nonfinite, dump, tmp_path, LOST), "consider")
    assert finding.title == "The first infinity was produced by log"


def test_a_healthy_dump_has_no_origin(tmp_path: Path) -> None:
    assert checked(origin_of_nonfinite, step(step(program())), tmp_path) is None


def test_the_finding_about_the_loss_points_to_the_op(tmp_path: Path) -> None:
    dump = step(step(program()), **FROM_LOG)
    finding = found(checked(loss_not_finite, dump, tmp_path, LOST))
    assert "ST313" in finding.change.text
