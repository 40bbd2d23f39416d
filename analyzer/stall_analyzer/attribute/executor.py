"""What the runtime did for the graph runs that the training thread waited for.

Only events that carry the id of such a run count, so that work of the input pipeline in the
background is never taken for the step's. At each instant progress beats waiting: a step waits for
input only while none of its own ops run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stall_analyzer.causes import code
from stall_analyzer.intervals import (
    NOTHING,
    Layer,
    Tiling,
    difference,
    inherit,
    innermost,
    paint,
)
from stall_analyzer.model import Bools, Int32s, Int64s, Trace, TrainingThread
from stall_analyzer.names import ABSENT, rows_named, stat_of, text_is
from stall_analyzer.training import run_of
from stall_analyzer.vocabulary import CHECK_OPS, INPUT_OPS, PY_FUNC_OPS, op_type

# First wins.
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
    """A stretch of one line that means something else than its events say."""

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


def executor_work(trace: Trace, training: TrainingThread) -> Work:
    """Every piece of every line that belongs to a run of the training thread."""
    events = trace.events
    label = inherit(_own_labels(trace), events.parent)
    owner_id = inherit(_own_ids(trace), events.parent)
    pieces = innermost(events.start_ps, events.duration_ps, events.parent, events.line)
    run = run_of(training.runs.id, owner_id[pieces.owner])
    mine = (run >= 0) & (label[pieces.owner] != NOTHING)
    start, end, owner, run = (x[mine] for x in (pieces.start, pieces.end, pieces.owner, run))
    waits = _async_waits(trace, training)
    start, end = np.concatenate([start, waits.start]), np.concatenate([end, waits.end])
    run = np.concatenate([run, waits.run])
    return Work(
        start=np.maximum(start, training.runs.start_ps[run]),
        end=np.minimum(end, training.runs.end_ps[run]),
        line=np.concatenate([events.line[owner], waits.line]),
        label=np.concatenate([label[owner], waits.label]),
        run=run,
    )


def run_tiling(work: Work, regions: Iterable[Region], default: int, begin: int, end: int) -> Tiling:
    """Causes of the runs over [begin, end); `default` where a run did nothing that shows."""
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
    return paint(
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
        ],
        default,
    )


def _compute_outside(work: Work, regions: tuple[Region, ...]) -> list[tuple[Int64s, Int64s]]:
    """Compute on each line, less the stretches of that line that were something else."""
    computing = work.label == code("compute.step")
    lines = sorted({region.line for region in regions})
    elsewhere = computing & ~np.isin(work.line, lines)
    result = [(work.start[elsewhere], work.end[elsewhere])]
    for line in lines:
        mine = computing & (work.line == line)
        here = [region for region in regions if region.line == line]
        cut_start = np.array([region.start_ps for region in here])
        cut_end = np.array([region.end_ps for region in here])
        result.append(difference(work.start[mine], work.end[mine], cut_start, cut_end))
    return result


def _own_labels(trace: Trace) -> Int64s:
    by_name = np.full(len(trace.names), NOTHING, dtype=np.int64)
    for index, name in enumerate(trace.names):
        cause = _cause_of_name(name)
        if cause:
            by_name[index] = code(cause)
    labels = by_name[trace.events.name]
    starts = rows_named(trace, lambda name: name == ASYNC_START)
    labels[starts[_is_input(trace, starts)]] = code("input.wait")
    labels[starts[_is_collective(trace, starts)]] = code("communication.collective")
    return labels


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
    """The run that an event says it works for. Iterators have ids too, of another kind."""
    ids = np.full(len(trace.events), NOTHING, dtype=np.int64)
    runs = rows_named(trace, lambda name: name == "ExecutorState::Process" or name in INPUT_EVENTS)
    for rows, stat in ((runs, "id"), (np.arange(len(trace.events)), "step_id")):
        values = stat_of(trace, stat, rows)
        known = values != ABSENT
        ids[rows[known]] = values[known]
    return ids


def _async_waits(trace: Trace, training: TrainingThread) -> Work:
    """Kernels that wait without a thread: from their start to their done event elsewhere."""
    events = trace.events
    starts = rows_named(trace, lambda name: name == ASYNC_START)
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


def _done_times(
    trace: Trace, training: TrainingThread, starts: Int64s, run: Int64s
) -> Int64s:
    """When each async kernel was done; a lost done event ends where the run's next op begins."""
    events = trace.events
    done = rows_named(trace, lambda name: name == ASYNC_DONE)
    produced, consumed = stat_of(trace, "_p", starts), stat_of(trace, "_c", done)
    order = np.argsort(consumed, kind="stable")
    done, consumed = done[order], consumed[order]
    match = run_of(consumed, produced)
    found = (match >= 0) & (produced != ABSENT)
    end = np.zeros(len(starts), dtype=np.int64)
    end[found] = events.start_ps[done[match[found]]]
    lost = ~found
    if lost.any():
        ops = rows_named(trace, lambda name: name == "ExecutorState::Process")
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
