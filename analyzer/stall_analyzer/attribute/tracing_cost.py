"""What the profiler costs while it runs: each op of a step is recorded.

An op of a graph leaves its own event and its share of what executors and thread pools write. The
trace itself shows how long this machine takes to write an event: in an eager op, one event begins
and ends right after another, with hardly a line of code between them.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.attribute.logging_cost import FLUSH, PREPARES, WRITES
from stall_analyzer.attribute.thread import EAGER_PREFIX
from stall_analyzer.decode.vocabulary import is_op
from stall_analyzer.model.causes import code, codes
from stall_analyzer.model.columns import percentile
from stall_analyzer.model.intervals import Layer, Tiling, among, overlay, paint
from stall_analyzer.model.timeline import TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import names_where, rows_beginning
from stall_analyzer.model.units import PS_PER_US, Bools, Int32s

# The gap also includes some code, and now and then an interruption, so the shorter ones count.
SHORTER_PERCENT = 20
LEAST_EAGER_OPS = 20
LOGGING_OPS = PREPARES | WRITES | {FLUSH}
USUAL_EVENT_PS = PS_PER_US // 2  # if there are too few gaps
# An op of a graph comes with two events, whose names are put together from node and type. Epochs of
# two programs, with and without the profiler: 2.6 and 3.3 times what the gap takes. The calls of a
# step alone: 1.3 (2,531 ops), 1.3 (238), 1.9 (272) and 2.0 (644, within noise); two cores share it.
EVENTS_PER_OP = 3
# Ops of a step run once in each of its runs; those of the input pipeline far more often.
ONCE = 1.1
# An estimate must leave the step some time of its own.
MOST_SHARE = 0.5
# One run differs from the next by this much anyway.
LEAST_SHARE = 0.01
# Executors also write events before a run's first op and after its last.
IN_RUNS = codes("compute.step", "compute.runtime", "host.dispatch")


def with_tracing(tiling: Tiling, trace: Trace, training: TrainingThread) -> Tiling:
    """A part of each run becomes `profiler.tracing`: its ops times what an event takes."""
    starts, ends = training.runs.start_ps, training.runs.end_ps
    ops = _ops_per_run(trace, len(starts))
    if ops == 0:
        return tiling
    cost = ops * EVENTS_PER_OP * event_ps(trace)
    tiles = np.flatnonzero(among(tiling.labels, IN_RUNS))
    begin, end = tiling.bounds[tiles], tiling.bounds[tiles + 1]
    order = np.argsort(starts)
    run = np.searchsorted(starts[order], begin, side="right") - 1
    inside = (run >= 0) & (begin < ends[order][run])
    begin, length, run = begin[inside], (end - begin)[inside], run[inside]
    computed = np.bincount(run, weights=length, minlength=len(starts))
    share = np.minimum(cost / np.maximum(computed, 1), MOST_SHARE)
    share[share < LEAST_SHARE] = 0
    taken = begin + (length * share[run]).astype(np.int64)
    layer = Layer(begin, taken, code("profiler.tracing"))
    return overlay(paint(int(tiling.bounds[0]), int(tiling.bounds[-1]), [layer]), tiling)


def event_ps(trace: Trace) -> int:
    """How long it takes to write an event on this machine."""
    events = trace.events
    inner = rows_beginning(trace, "KernelAndDevice")
    outer = events.parent[inner]
    known = (outer >= 0) & _of_an_op(trace, outer)
    inner, outer = inner[known], outer[known]
    others = ~_logs(trace, outer)
    if others.sum() >= LEAST_EAGER_OPS:
        inner, outer = inner[others], outer[others]
    if len(inner) < LEAST_EAGER_OPS:
        return USUAL_EVENT_PS
    gaps = (
        events.start_ps[inner] - events.start_ps[outer],
        events.end_ps[outer] - events.end_ps[inner],
    )
    return int(sum(percentile(gap, SHORTER_PERCENT) for gap in gaps))


def _of_an_op(trace: Trace, rows: Int32s) -> Bools:
    """Which of the events start an eager op and not a graph."""
    around = trace.events.parent[rows]
    is_op = names_where(
        trace, lambda n: n.startswith("EagerLocalExecute: ") and "__inference" not in n
    )
    name, start = trace.events.name, trace.numbers.get("EagerKernelExecute", -1)
    return np.asarray((around >= 0) & (name[rows] == start) & is_op[name[around]])


def _logs(trace: Trace, rows: Int32s) -> Bools:
    """Ops of scalars follow one another, with all they need in the caches; those of a graph do not.
    Otherwise, the more was logged, the cheaper an event would seem."""
    is_logging = names_where(trace, lambda name: name.removeprefix(EAGER_PREFIX) in LOGGING_OPS)
    return np.asarray(is_logging[trace.events.name[trace.events.parent[rows]]])


def _ops_per_run(trace: Trace, runs: int) -> float:
    """How many graph ops a run has, over the whole trace."""
    if runs == 0:
        return 0.0
    counts = trace.totals.count[names_where(trace, is_op)]
    return float(counts[counts <= ONCE * runs].sum()) / runs
