"""Refinements of a tiling: relabel parts that already have a label.

Each function takes cause codes over the window and returns new ones; lengths never change, so
time stays conserved.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.attribute.filled_stores import filling_spans
from stall_analyzer.decode.vocabulary import BIT_GRADIENT, BIT_IS_FINITE, BIT_UPDATE
from stall_analyzer.model.causes import code, codes, codes_of_bucket
from stall_analyzer.model.columns import distinct, median
from stall_analyzer.model.intervals import Tiling, among, covered, enclosing, refine, time_in, union
from stall_analyzer.model.timeline import TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_named, rows_with, text_is
from stall_analyzer.model.units import PS_PER_MS, Bools, Int64s

# A first run must be this much slower than the usual one before the excess is called warm-up.
WARM_UP_FACTOR = 1.2
WARM_UP_LEAST_PS = PS_PER_MS
WARM_UP_LATER_RUNS = 3
# A first batch must be this much slower than the usual one to count as a separate cost.
FIRST_WAIT_FACTOR = 5
FIRST_WAIT_LEAST_PS = 20 * PS_PER_MS
# A shuffle buffer that was being filled for this share of the first wait explains it.
SHUFFLE_SHARE = 0.5

COMPUTE = codes("compute.step", "compute.runtime")
# Causes that a callback's own work absorbs. Saving, summaries and graph building keep their names.
OF_SIDE_WORK = np.concatenate(
    [
        codes_of_bucket("input"),
        codes_of_bucket("compute"),
        codes("host.python", "host.dispatch", "host.eager", "host.py_func"),
    ]
)


def relabel(tiling: Tiling, where: Bools, cause: str) -> Tiling:
    return Tiling(tiling.bounds, np.where(where, code(cause), tiling.labels))


def relabel_inside(tiling: Tiling, start: Int64s, end: Int64s, old: Int64s, cause: str) -> Tiling:
    """Relabel everything with one of the `old` codes inside the intervals as `cause`."""
    if len(start) == 0:
        return tiling
    start, end = union(start, end)
    tiling = refine(tiling, np.concatenate([start, end]))
    inside = covered(tiling.bounds[:-1], start, end)
    return relabel(tiling, inside & among(tiling.labels, old), cause)


def first_part(
    tiling: Tiling, begin: int, end: int, old: Int64s, amount: int, cause: str
) -> Tiling:
    """Relabel the first `amount` ps of the `old` codes between begin and end as `cause`."""
    tiling = refine(tiling, np.array([begin, end]))
    bounds, labels = tiling
    eligible = among(labels, old) & (bounds[:-1] >= begin) & (bounds[1:] <= end)
    lengths = np.where(eligible, np.diff(bounds), 0)
    used = np.cumsum(lengths)
    last = int(np.searchsorted(used, amount))
    if amount <= 0 or not eligible.any():
        return tiling
    if last >= len(labels):
        return relabel(tiling, eligible, cause)
    cut = int(bounds[last + 1] - (used[last] - amount))
    tiling = refine(tiling, np.array([cut]))
    eligible = among(tiling.labels, old) & (tiling.bounds[:-1] >= begin)
    return relabel(tiling, eligible & (tiling.bounds[1:] <= cut), cause)


def with_warm_up(tiling: Tiling, trace: Trace, training: TrainingThread) -> Tiling:
    """The first run of a graph creates kernels and touches its memory for the first time."""
    calls = training.calls
    spent = time_in(tiling, calls.start_ps, calls.end_ps, COMPUTE)
    is_xla = _compiles_with_xla(trace, training)
    for graph in distinct(calls.concrete[calls.traced & (calls.concrete >= 0)]):
        mine = np.flatnonzero(calls.concrete == graph)
        if len(mine) <= WARM_UP_LATER_RUNS or not calls.traced[mine[0]]:
            continue
        first, usual = int(spent[mine[0]]), int(median(spent[mine[1:]]))
        if first > WARM_UP_FACTOR * usual + WARM_UP_LEAST_PS:
            tiling = first_part(
                tiling,
                int(calls.start_ps[mine[0]]),
                int(calls.end_ps[mine[0]]),
                COMPUTE,
                first - usual,
                "compile.xla" if is_xla[mine[0]] else "compute.warm_up",
            )
    return tiling


def _compiles_with_xla(trace: Trace, training: TrainingThread) -> Bools:
    """Calls that trace a function for XLA, directly or inside: older versions of TensorFlow show
    nothing else of the compiler."""
    functions = rows_with(trace, "tf_function_call").astype(np.int64)
    for_xla = text_is(trace, "tf_function_call", functions, "traced-xla".__eq__)
    calls = training.calls
    around = enclosing(calls.start_ps, calls.end_ps, trace.events.start_ps[functions[for_xla]])
    found = np.zeros(len(calls.row), dtype=np.bool_)
    found[around[around >= 0]] = True
    return found


def with_side_work(tiling: Tiling, training: TrainingThread) -> Tiling:
    """What a callback computes and reads belongs to the callback, while training waits for it."""
    side = training.side
    return relabel_inside(tiling, side.start_ps, side.end_ps, OF_SIDE_WORK, "host.callback")


def with_skipped_updates(tiling: Tiling, training: TrainingThread) -> Tiling:
    """Loss scaling found an overflow and left the variables alone: the step taught nothing."""
    runs = training.runs
    checked = (runs.bits & (BIT_IS_FINITE | BIT_GRADIENT)) == (BIT_IS_FINITE | BIT_GRADIENT)
    updated = (runs.bits & BIT_UPDATE) > 0
    if not (checked & updated).any():
        return tiling  # no step shows its updates, so nothing can be said
    skipped = checked & ~updated
    return relabel_inside(
        tiling,
        runs.start_ps[skipped],
        runs.end_ps[skipped],
        codes_of_bucket("compute"),
        "numerics.skipped_update",
    )


def with_cache_fill(tiling: Tiling, trace: Trace) -> Tiling:
    """A cache uses the stages behind it only while it is being filled."""
    waits = codes("input.wait", "input.first_element", "input.shuffle_fill")
    return relabel_inside(tiling, *filling_spans(trace), waits, "input.cache_fill")


def with_first_wait(tiling: Tiling, trace: Trace, step_start: Int64s, step_end: Int64s) -> Tiling:
    """The first batch is often late: buffers fill and files open once."""
    wait = codes("input.wait")
    waits = time_in(tiling, step_start, step_end, wait)
    if len(waits) < 2:
        return tiling
    usual = int(median(waits[1:]))
    if waits[0] < FIRST_WAIT_FACTOR * usual + FIRST_WAIT_LEAST_PS:
        return tiling
    begin, end = int(step_start[0]), int(step_end[0])
    shuffles = rows_named(trace, lambda name: name.rpartition("::")[2].startswith("Shuffle"))
    events = trace.events
    start = np.clip(events.start_ps[shuffles], begin, end)
    filling = np.clip(events.end_ps[shuffles], begin, end) - start
    filled = filling.max(initial=0) > SHUFFLE_SHARE * waits[0]
    cause = "input.shuffle_fill" if filled else "input.first_element"
    return first_part(tiling, begin, end, wait, int(waits[0]) - usual, cause)
