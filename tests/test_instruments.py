"""The cost of logging and tracing belongs to the profiler's bucket, and to no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from tests.traces import TRAIN_OPS, call, causes_ms, clock, event, ledger_of, ops, trainer
from tests.xspace import Event

START_NS = 1_700_000_000 * 10**9
SCALAR = ("_EagerConst", "LogicalAnd", "Identity", "WriteSummary")


def eager(op: str, at_ms: float) -> Event:
    return event(f"EagerLocalExecute: {op}", at_ms, at_ms + 0.1)


def scalar(at_ms: float) -> list[Event]:
    """Four ops of 0.1 ms, 0.1 ms apart; the record is written by the last."""
    return [eager(op, at_ms + 0.2 * i) for i, op in enumerate(SCALAR)]


def log_of(**tags: list[float]) -> EventLog:
    """Scalars by their tag, and when each was written."""
    train = {}
    for tag, at_ms in tags.items():
        wall = np.array([START_NS + round(ms * 10**6) for ms in at_ms], dtype=np.int64)
        train[tag] = Series(np.arange(len(wall)), wall, np.ones(len(wall)))
    last = max(int(series.wall_ns[-1]) for series in train.values())
    return EventLog(train, {}, KerasConfig(START_NS, "Sequential", ()), START_NS, last, None, 1)


def causes(folder: Path, between: list[Event], log: EventLog) -> dict[str, float]:
    """Two steps of 10 ms with 10 ms between them."""
    calls = [*call(0, 10, run=1), *between, *call(20, 30, run=2)]
    work = [*ops(0, 10, 1, *TRAIN_OPS), *ops(20, 30, 2, *TRAIN_OPS)]
    lines = trainer(calls, work)
    return causes_ms(ledger_of(folder, lines, clock(START_NS, 0.03), events=log))


def test_a_scalar_of_every_batch_is_logging_with_the_python_around_it(tmp_path: Path) -> None:
    """0.7 ms from its first op to its last, and 0.1 ms on each side."""
    found = causes(tmp_path, scalar(12), log_of(batch_loss=[12.65, 30]))
    assert round(found["profiler.logging"], 6) == 0.9
    assert round(found["host.python"], 6) == 9.1


def test_the_programs_own_scalar_is_the_hosts(tmp_path: Path) -> None:
    found = causes(tmp_path, scalar(12), log_of(norm=[12.65], batch_loss=[9, 30]))
    assert "profiler.logging" not in found
    assert round(found["host.summary"], 6) == 0.1


def test_only_ours_of_two_scalars_in_a_pause_is_logging(tmp_path: Path) -> None:
    both = [*scalar(12), *scalar(16)]
    found = causes(tmp_path, both, log_of(norm=[16.65], batch_loss=[12.65, 30]))
    assert round(found["profiler.logging"], 6) == 0.9
    assert round(found["host.summary"], 6) == 0.1


def test_python_that_runs_long_before_the_scalar_is_a_callbacks(tmp_path: Path) -> None:
    """The pause is as long as before; only as much of it as usual leads up to the scalar."""
    found = causes(tmp_path, scalar(19), log_of(batch_loss=[19.65, 30]))
    assert found["host.python"] > 9


def test_a_loss_that_keras_prepares_and_does_not_write_is_logging(tmp_path: Path) -> None:
    """With update_freq="epoch", the callback still makes a tensor of each loss."""
    found = causes(tmp_path, [eager("_EagerConst", 15)], log_of(epoch_loss=[30]))
    assert round(found["profiler.logging"], 6) == 0.6  # 0.1 ms and 0.25 ms on each side


def test_without_a_log_of_keras_a_lone_tensor_is_the_programs(tmp_path: Path) -> None:
    found = causes(tmp_path, [eager("_EagerConst", 15)], log_of(batch_loss=[9, 30]))
    assert "profiler.logging" not in found


def test_a_scalar_that_waits_for_the_interpreter_is_logging_as_long_as_it_waits(
    tmp_path: Path,
) -> None:
    """Another thread kept it for 5 ms, between two ops of the scalar."""
    waits = [eager(op, 11 + 0.2 * i + 5 * (i > 1)) for i, op in enumerate(SCALAR)]
    found = causes(tmp_path, waits, log_of(batch_loss=[16.65, 30]))
    assert found["profiler.logging"] > 5.5


def test_what_the_capture_does_on_the_training_thread_is_its_own(tmp_path: Path) -> None:
    """2 ms while a step is traced with its probe, and 3 ms after the step."""
    calls = [
        *call(0, 10, run=1, traced_ms=5),
        event("StallCapture", 1, 3),
        event("StallCapture", 11, 14),
        *call(20, 30, run=2),
    ]
    work = [*ops(5, 10, 1, *TRAIN_OPS), *ops(20, 30, 2, *TRAIN_OPS)]
    found = causes_ms(ledger_of(tmp_path, trainer(calls, work)))
    assert found["profiler.capture"] == 5
    assert found["compile.tracing"] == 3


def test_the_profiler_takes_its_time_for_every_op_of_a_step(tmp_path: Path) -> None:
    """1,000 ops with three events each, at half a microsecond per event: 1.5 ms of a 10 ms step."""
    names = [f"layer_{i}/MatMul:MatMul" for i in range(1000)]
    calls = [*call(0, 10, run=1), *call(12, 22, run=2)]
    work = [*ops(0, 10, 1, *names), *ops(12, 22, 2, *names)]
    ledger = ledger_of(tmp_path, trainer(calls, work))
    assert round(causes_ms(ledger)["profiler.tracing"], 1) == 3


def eager_with_kernel(op: str, at_ms: float, gap_ms: float) -> list[Event]:
    """Writing an event takes half of `gap_ms` on each side of the kernel."""
    end_ms = at_ms + 0.01
    return [
        event(f"EagerLocalExecute: {op}", at_ms - 0.001, end_ms + 0.001),
        event("EagerKernelExecute", at_ms, end_ms),
        event("KernelAndDeviceOp::Run", at_ms + gap_ms / 2, end_ms - gap_ms / 2),
    ]


def test_what_an_event_takes_does_not_depend_on_how_much_is_logged(tmp_path: Path) -> None:
    """The program's ops say 1 µs, so 3 ms per step; those of scalars would say 0.2 µs."""
    names = [f"layer_{i}/MatMul:MatMul" for i in range(1000)]
    own = [e for i in range(20) for e in eager_with_kernel("Mul", 10.1 + i / 50, 0.001)]
    logged = [e for i in range(60) for e in eager_with_kernel("Identity", 10.6 + i / 50, 0.0002)]
    calls = [*call(0, 10, run=1), *own, *logged, *call(12, 22, run=2)]
    work = [*ops(0, 10, 1, *names), *ops(12, 22, 2, *names)]
    found = causes_ms(ledger_of(tmp_path, trainer(calls, work)))
    assert round(found["profiler.tracing"], 1) == 6


def test_ops_of_the_input_are_not_the_steps(tmp_path: Path) -> None:
    """What runs for every element does not run in the step, whatever its name."""
    calls = [*call(0, 10, run=1), *call(10, 20, run=2)]
    work = [*ops(0, 10, 1, *TRAIN_OPS), *ops(10, 20, 2, *TRAIN_OPS)]
    elements = ops(0, 20, 99, *["map/Add:AddV2"] * 4000)
    lines = trainer(calls, work, ("tf_data_private_threadpool", elements))
    assert "profiler.tracing" not in causes_ms(ledger_of(tmp_path, lines))
