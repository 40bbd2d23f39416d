"""XLA, variables, eager ops and dispatch: each detector fires on its case, not on a near miss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.detectors.compile import (
    dispatch_dominates,
    eager_hot_loop,
    tracing,
    variable_initialization,
    warm_up,
    xla_compilation,
    xla_recompilation,
)
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals
from tests.detectors.test_compile import after_first_call, signals, traced_twice
from tests.detectors.training import found
from tests.traces import TRAIN_OPS, call, event, keras_log, ops, steps
from tests.xspace import Event

MS = PS_PER_MS


# ------------------------------------------------------------ XLA and variables


def compiled(run: int, start_ms: float, done_ms: float, end_ms: float) -> list[Event]:
    """XLA compiles until `done_ms`, then the compiled code runs."""
    return [
        event("ExecutorState::Process", start_ms, end_ms, id=run),
        event(
            "ExecutorState::ProcessAsync::Start",
            start_ms,
            end_ms,
            kernel_type="StatefulPartitionedCall",
            step_id=run,
        ),
        event("CpuCompiler::RunBackend", start_ms, done_ms),
        event("CpuExecutable::ExecuteAsyncOnStream", done_ms, end_ms),
    ]


def xla_run(folder: Path, count: int, last_ms: float = 10) -> Signals:
    """A first call that compiles for 490 ms, usual ones of 10 ms, and a last one."""
    python, work = steps(500, count, first_run=10, names=["run:XlaHostCompute"])
    begin = 500 + count * 10
    python = [*call(0, 500, run=1), *python, *call(begin, begin + last_ms, run=99)]
    last = compiled(99, begin, begin + last_ms - 5, begin + last_ms) if last_ms > 10 else []
    return signals(folder, python, [*compiled(1, 0, 490, 500), *work, *last])


def test_xla_that_a_short_epoch_cannot_repay(tmp_path: Path) -> None:
    run = xla_run(tmp_path, count=8)
    # happens once, and takes less than five seconds
    finding = found(xla_compilation.check(run), "consider")
    assert finding.lost_ps == finding.gain.high_ps == 490 * MS
    assert finding.gain.low_ps == (392 - 9 * 10) * MS
    assert "6 epochs to repay" in finding.explanation
    assert xla_recompilation.check(run) is None


def test_xla_that_long_training_repays_is_a_note(tmp_path: Path) -> None:
    run = xla_run(tmp_path, count=8)
    longer = replace(run, timeline=replace(run.timeline, later_epochs_ps=(90 * MS,) * 9))
    assert found(xla_compilation.check(longer), "note")


def test_xla_that_the_first_epoch_repays_is_left_alone(tmp_path: Path) -> None:
    assert xla_compilation.check(xla_run(tmp_path, count=300)) is None


def test_xla_again_for_the_last_batch(tmp_path: Path) -> None:
    finding = found(xla_recompilation.check(xla_run(tmp_path, count=8, last_ms=200)))
    assert finding.title == "The last batch makes XLA compile again"
    assert finding.lost_ps == 195 * MS
    assert "drop_remainder=True" in finding.change.after


def initialized(folder: Path, until_ms: float) -> Signals:
    first = [
        event("train_step", 0, until_ms + 10, tf_function_call="traced-nonXla", tracing_count=1),
        event("EagerExecute", 0, until_ms),
        event("EagerLocalExecute: __inference_initialize_variables_3", 0, until_ms),
    ]
    return after_first_call(folder, first, until_ms + 10, count=20)


def test_variables_that_the_first_step_fills(tmp_path: Path) -> None:
    finding = found(variable_initialization.check(initialized(tmp_path, 300)))
    assert (finding.severity, finding.lost_ps) == ("consider", 300 * MS)
    assert variable_initialization.check(initialized(tmp_path, 5)) is None


def test_one_change_is_one_finding(tmp_path: Path) -> None:
    """Building before fit() fixes both, so only one of the two is reported."""
    short = after_first_call(tmp_path, traced_twice(300, 200), 530, count=4)
    assert tracing.check(short) is not None and variable_initialization.check(short) is None
    filled = after_first_call(tmp_path, traced_twice(30, 20), 80, count=4)
    assert tracing.check(filled) is None
    finding = found(variable_initialization.check(filled))
    assert finding.lost_ps == (10 + 30 + 20) * MS
    assert (finding.gain.low_ps, finding.gain.high_ps) == (26 * MS, 40 * MS)


def test_a_slow_first_run_is_a_note(tmp_path: Path) -> None:
    first = call(0, 300, run=1, traced_ms=20)
    python, work = steps(300, 20, first_run=100)
    run = signals(tmp_path, [*first, *python], [*ops(20, 300, 1, *TRAIN_OPS), *work])
    finding = found(warm_up.check(run))
    assert (finding.severity, finding.lost_ps) == ("note", 270 * MS)
    usual = after_first_call(tmp_path, call(0, 30, run=1, traced_ms=20), 30, count=20)
    assert warm_up.check(usual) is None


# ------------------------------------------------------------ eager ops and dispatch


def eager_steps(
    folder: Path, count: int, *, kernel_ms: float, python_ms: float, pause_ms: float = 0
) -> Signals:
    """Steps of a fetch and ten ops, with Python between them and a callback at the end."""
    python: list[Event] = []
    now = 0.0
    for _ in range(count):
        python.append(event("EagerLocalExecute: IteratorGetNext", now, now + 0.1))
        now += 0.1
        for op in ("MatMul",) * 9 + ("AssignSubVariableOp",):
            now += python_ms
            python += [
                event("EagerExecute", now, now + kernel_ms),
                event(f"EagerLocalExecute: {op}", now, now + kernel_ms),
                event("KernelAndDeviceOp::Run", now, now + kernel_ms),
            ]
            now += kernel_ms
        now += pause_ms
    python.append(event("EagerLocalExecute: IteratorGetNext", now, now + 0.1))
    return signals(folder, python)


def test_training_op_by_op_wins_its_python(tmp_path: Path) -> None:
    run = eager_steps(tmp_path, 100, kernel_ms=0.1, python_ms=1)
    finding = found(eager_hot_loop.check(run), "act")
    assert finding.lost_ps == finding.gain.high_ps == 100 * 10 * MS
    assert finding.gain.low_ps == (90 - 25) * 10 * MS
    assert "@tf.function" in finding.change.after


def test_run_eagerly_is_named_where_the_model_says_so(tmp_path: Path) -> None:
    run = eager_steps(tmp_path, 100, kernel_ms=0.1, python_ms=1)
    log = keras_log(KerasConfig(0, "Sequential", (), run_eagerly=True))
    finding = found(eager_hot_loop.check(replace(run, timeline=replace(run.timeline, events=log))))
    assert "run_eagerly=True" in finding.change.before


def test_heavy_eager_ops_and_slow_callbacks_are_not_eager_overhead(tmp_path: Path) -> None:
    assert eager_hot_loop.check(eager_steps(tmp_path, 50, kernel_ms=9, python_ms=0.1)) is None
    slow_callback = eager_steps(tmp_path, 50, kernel_ms=0.1, python_ms=0.1, pause_ms=80)
    assert eager_hot_loop.check(slow_callback) is None


def short_steps(folder: Path, count: int = 100, busy: float = 0.2, pause_ms: float = 1) -> Signals:
    python, work = steps(0, count, first_run=1, length_ms=2, pause_ms=pause_ms, busy=busy)
    return signals(folder, python, work)


def test_steps_shorter_than_their_start(tmp_path: Path) -> None:
    run = short_steps(tmp_path)
    finding = found(dispatch_dominates.check(run), "act")
    starting = 99 * (1.6 + 1) * MS
    waking = 0.7 * run.causes_ps["compute.step"]  # of threads, in each of the tiny steps
    assert finding.lost_ps == pytest.approx(starting + waking, rel=0.01)
    assert finding.gain.low_ps == pytest.approx(0.5 * starting, rel=0.01)
    assert finding.later_gain.low_ps == finding.gain.low_ps
    assert finding.later_gain.high_ps == pytest.approx(starting, rel=0.01)
    assert "tf.range(16)" in finding.change.after


def test_steps_that_compute_or_wait_for_callbacks_are_started_well_enough(tmp_path: Path) -> None:
    assert dispatch_dominates.check(short_steps(tmp_path, busy=0.9)) is None
    assert dispatch_dominates.check(short_steps(tmp_path, pause_ms=20)) is None
    assert dispatch_dominates.check(short_steps(tmp_path, count=30)) is None


def test_several_steps_a_call_are_set_already(tmp_path: Path) -> None:
    run = short_steps(tmp_path)
    log = keras_log(KerasConfig(0, "Sequential", (), steps_per_execution=8))
    several = replace(run, timeline=replace(run.timeline, events=log))
    assert dispatch_dominates.check(several) is None
