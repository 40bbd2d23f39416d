"""What the runtime did for the graph runs that the training thread waited for.

Only events that carry the id of such a run count, so background work of the input pipeline is never
mistaken for the step's. At each instant progress beats waiting: a step waits for input only while
none of its own ops run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from stall_analyzer.align.training_thread import run_of
from stall_analyzer.decode.vocabulary import (
    CHECK_OPS,
    INPUT_OPS,
    MOST_NAMES,
    PY_FUNC_OPS,
    op_type,
)
from stall_analyzer.model.causes import code
from stall_analyzer.model.columns import is_in
from stall_analyzer.model.intervals import (
    NOTHING,
    Layer,
    Tiling,
    difference,
    inherit,
    innermost,
    paint,
    simplify,
)
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import ABSENT, rows_called, rows_with, stat_of, text_is
from stall_analyzer.model.units import Bools, Int32s, Int64s

# The first one wins.
PRIORITY = (
    "compute.step",
    "numerics.check_ops",
    "compile.xla",
    "host.py_func",
    "memory.out_of_memory",
    "memory.allocator_wait",
    "communication.collective",
    "input.wait",
)
INPUT_EVENTS = frozenset(
    {"IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute",
     "MultiDeviceIteratorGetNextFromShard"}
)  # fmt: skip
ASYNC_START = "ExecutorState::ProcessAsync::Start"
ASYNC_DONE = "ExecutorState::ProcessAsync::Done"


@dataclass(frozen=True)
class Region:
    """A stretch of one line that is something other than its events say."""

    line: int
    start_ps: int
    end_ps: int
    cause: str


@dataclass(frozen=True)
class Work:
    """Pieces of lines that worked or waited for a run, clipped to it."""

    start: Int64s
    end: Int64s
    line: Int32s
    label: Int64s
    run: Int64s


def executor_work(trace: Trace, training: TrainingThread) -> tuple[Work, Work]:
    """Pieces of lines that belong to a run of the training thread, and pieces of those that run
    other graphs at the same time (`run` is -1)."""
    events = trace.events
    label = inherit(_own_labels(trace), events.parent)
    owner_id = inherit(_own_ids(trace), events.parent)
    pieces = innermost(events.start_ps, events.duration_ps, events.parent, events.line)
    known = label[pieces.owner] != NOTHING
    start, end, owner = pieces.start[known], pieces.end[known], pieces.owner[known]
    run = run_of(training.runs.id, owner_id[owner])
    every = Work(start, end, events.line[owner], label[owner], run)
    own = _join(_where(every, run >= 0), _async_waits(trace, training))
    clipped = replace(
        own,
        start=np.maximum(own.start, training.runs.start_ps[own.run]),
        end=np.minimum(own.end, training.runs.end_ps[own.run]),
    )
    return clipped, _where(every, run < 0)


def _where(work: Work, mask: Bools) -> Work:
    return Work(work.start[mask], work.end[mask], work.line[mask], work.label[mask], work.run[mask])


def _join(one: Work, other: Work) -> Work:
    return Work(
        start=np.concatenate([one.start, other.start]),
        end=np.concatenate([one.end, other.end]),
        line=np.concatenate([one.line, other.line]),
        label=np.concatenate([one.label, other.label]),
        run=np.concatenate([one.run, other.run]),
    )


def run_tiling(
    work: Work, regions: Iterable[Region], outside: int, between: int, begin: int, end: int
) -> Tiling:
    """Causes of the runs over [begin, end).

    `outside` is the cause before a run's first op and after its last, `between` while no op runs.
    """
    layers = {
        cause: [(work.start[mask], work.end[mask])]
        for cause in PRIORITY
        if (mask := work.label == code(cause)).any()
    }
    regions = tuple(regions)
    if regions:
        layers["compute.step"] = _compute_outside(work, regions)
    for region in regions:
        layers.setdefault(region.cause, []).append(
            (np.array([region.start_ps]), np.array([region.end_ps]))
        )
    tiling = paint(
        begin,
        end,
        [
            Layer(
                np.concatenate([start for start, _ in layers[cause]]),
                np.concatenate([stop for _, stop in layers[cause]]),
                code(cause),
            )
            for cause in PRIORITY
            if layers.get(cause)
        ]
        + [Layer(*_extents(work), between)],
        outside,
    )
    return _until_next_op(tiling, between)


def _until_next_op(tiling: Tiling, between: int) -> Tiling:
    """A wait lasts until an op runs again: waking the thread that continues is part of it."""
    idle = tiling.labels[1:] == between
    waited = tiling.labels[:-1] == code("input.wait")
    labels = tiling.labels.copy()
    labels[1:][idle & waited] = code("input.wait")
    return simplify(Tiling(tiling.bounds, labels))


def _extents(work: Work) -> tuple[Int64s, Int64s]:
    """From the first to the last thing that each run did."""
    worked = np.bincount(work.run) > 0
    first = np.full(len(worked), 1 << 62, dtype=np.int64)
    last = np.zeros(len(worked), dtype=np.int64)
    np.minimum.at(first, work.run, work.start)
    np.maximum.at(last, work.run, work.end)
    return first[worked], last[worked]


def _compute_outside(work: Work, regions: tuple[Region, ...]) -> list[tuple[Int64s, Int64s]]:
    """Compute on each line, without the stretches of that line that were something else."""
    computing = work.label == code("compute.step")
    lines = sorted({region.line for region in regions})
    elsewhere = computing & ~is_in(work.line, lines)
    result = [(work.start[elsewhere], work.end[elsewhere])]
    for line in lines:
        mine = computing & (work.line == line)
        here = [region for region in regions if region.line == line]
        cut_start = np.array([region.start_ps for region in here])
        cut_end = np.array([region.end_ps for region in here])
        result.append(difference(work.start[mine], work.end[mine], cut_start, cut_end))
    return result


def _own_labels(trace: Trace) -> Int64s:
    labels = np.array([_label_of(name) for name in trace.names], np.int64)[trace.events.name]
    starts = rows_called(trace, ASYNC_START)
    labels[starts[_is_input(trace, starts)]] = code("input.wait")
    labels[starts[_is_collective(trace, starts)]] = code("communication.collective")
    return labels


@lru_cache(MOST_NAMES)
def _label_of(name: str) -> int:
    cause = _cause_of_name(name)
    return code(cause) if cause else NOTHING


def _cause_of_name(name: str) -> str | None:
    if name == "ExecutorState::Process":
        return "compute.step"
    kind = op_type(name) or name
    if name in INPUT_EVENTS or kind in INPUT_OPS:
        return "input.wait"
    if kind in PY_FUNC_OPS:
        return "host.py_func"
    if kind in CHECK_OPS:
        return "numerics.check_ops"
    if kind == "_XlaCompile":
        return "compile.xla"
    if kind.startswith("Collective"):
        return "communication.collective"
    return None


def _own_ids(trace: Trace) -> Int64s:
    """The run that an event says it works for. Iterators also have ids, of another kind."""
    ids = np.full(len(trace.events), NOTHING, dtype=np.int64)
    runs = rows_called(trace, "ExecutorState::Process", *INPUT_EVENTS)
    for rows, stat in ((runs, "id"), (rows_with(trace, "step_id"), "step_id")):
        values = stat_of(trace, stat, rows)
        known = values != ABSENT
        ids[rows[known]] = values[known]
    return ids


def _async_waits(trace: Trace, training: TrainingThread) -> Work:
    """Kernels that wait without a thread: from their start to their done event elsewhere."""
    events = trace.events
    starts = rows_called(trace, ASYNC_START)
    is_input = _is_input(trace, starts)
    waits = is_input | _is_collective(trace, starts)
    starts, is_input = starts[waits], is_input[waits]
    run = run_of(training.runs.id, stat_of(trace, "step_id", starts))
    starts, is_input, run = starts[run >= 0], is_input[run >= 0], run[run >= 0]
    return Work(
        start=events.start_ps[starts],
        end=_done_times(trace, training, starts, run),
        line=events.line[starts],
        label=np.where(is_input, code("input.wait"), code("communication.collective")),
        run=run,
    )


def _done_times(trace: Trace, training: TrainingThread, starts: Int64s, run: Int64s) -> Int64s:
    """When each async kernel was done; if its done event is lost, when the run's next op begins."""
    events = trace.events
    done = rows_called(trace, ASYNC_DONE)
    produced, consumed = stat_of(trace, "_p", starts), stat_of(trace, "_c", done)
    order = np.argsort(consumed, kind="stable")
    done, consumed = done[order], consumed[order]
    match = run_of(consumed, produced)
    found = (match >= 0) & (produced != ABSENT)
    end = np.zeros(len(starts), dtype=np.int64)
    end[found] = events.start_ps[done[match[found]]]
    lost = ~found
    if lost.any():
        ops = rows_called(trace, "ExecutorState::Process")
        op_run = run_of(training.runs.id, stat_of(trace, "id", ops))
        for index in np.flatnonzero(lost):
            after = events.start_ps[ops[op_run == run[index]]]
            after = after[after > events.end_ps[starts[index]]]
            end[index] = after.min(initial=training.runs.end_ps[run[index]])
    return np.maximum(end, events.start_ps[starts])


def _is_input(trace: Trace, starts: Int64s) -> Bools:
    return text_is(trace, "kernel_type", starts, INPUT_OPS.__contains__)


def _is_collective(trace: Trace, starts: Int64s) -> Bools:
    return text_is(trace, "kernel_type", starts, lambda kind: kind.startswith("Collective"))
