"""Cores that background input takes from a step that computes on the CPU.

Such input is always in time, so nothing waits, and yet the step is slow. With `cores` cores, a step
that keeps p threads busy while q threads of tf.data compute gets cores / (p + q) of what it would
get alone, as soon as p + q is more than the cores; the rest of its time is input's. Threads inside
Python functions do not count (they may be asleep), nor stages that only wait for other stages.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.attribute.executor import Work
from stall_analyzer.causes import code, codes
from stall_analyzer.intervals import (
    Layer,
    Tiling,
    distinct,
    innermost,
    label_at,
    paint,
    simplify,
)
from stall_analyzer.model import Bools, Int64s, Trace

COMPUTE = codes("compute.step", "compute.runtime", "compute.warm_up", "compute.eager_op")
PIPELINE_THREADS = "tf_data_"
# Stages whose own time is waiting for the threads that do their work.
WAITING_STAGES = (
    "Prefetch", "ParallelMap", "MapAndBatch", "ParallelInterleave", "ParallelBatch", "Root",
    "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "FiniteTake", "FiniteSkip", "Generator",
)  # fmt: skip


def with_contention(tiling: Tiling, trace: Trace, own: Work, others: Work) -> Tiling:
    cores = _cores(trace)
    on_pipeline = _pipeline_lines(trace)
    native = (others.label == code("compute.step")) & on_pipeline[others.line]
    stages = _busy_stages(trace, on_pipeline)
    if cores is None or not (native.any() or len(stages[0])):
        return tiling
    input_start = np.concatenate([others.start[native], stages[0]])
    input_end = np.concatenate([others.end[native], stages[1]])
    computing = own.label == code("compute.step")
    steps = _count(own.start[computing], own.end[computing])
    inputs = _count(input_start, input_end)
    fine = distinct(tiling.bounds, steps.bounds, inputs.bounds)
    fine = fine[(fine >= tiling.bounds[0]) & (fine <= tiling.bounds[-1])]
    at = fine[:-1]
    p = np.maximum(label_at(steps, at), 1)
    q = np.maximum(label_at(inputs, at), 0)
    share = np.minimum(cores, p) * (p + q) / np.maximum(np.minimum(cores, p + q) * p, 1)
    lost = np.diff(fine) * (1 - 1 / np.maximum(share, 1))
    tile = np.searchsorted(tiling.bounds, at, side="right") - 1
    eligible = np.isin(tiling.labels, COMPUTE)
    per_tile = np.bincount(tile, weights=lost, minlength=len(tiling.labels)).astype(np.int64)
    return _give_first_part(tiling, np.where(eligible, per_tile, 0))


def _cores(trace: Trace) -> int | None:
    """tf.data writes down how many cores it may use; older versions do not."""
    column = trace.stats.get("cpu_budget")
    return int(column.values.max()) if column is not None and len(column.values) else None


def _pipeline_lines(trace: Trace) -> Bools:
    return np.array([line.name.startswith(PIPELINE_THREADS) for line in trace.lines], np.bool_)


def _busy_stages(trace: Trace, on_pipeline: Bools) -> tuple[Int64s, Int64s]:
    """Stages of the pipeline that work on their own thread: copying, decoding, shuffling."""
    events = trace.events
    works = np.fromiter(
        (
            name.startswith("Iterator::")
            and not name.rpartition("::")[2].split("[")[0].startswith(WAITING_STAGES)
            for name in trace.names
        ),
        np.bool_,
        len(trace.names),
    )
    rows = np.flatnonzero(on_pipeline[events.line])
    if len(rows) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    position = np.full(len(events) + 1, -1, dtype=np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    pieces = innermost(
        events.start_ps[rows],
        events.duration_ps[rows],
        position[events.parent[rows]],
        events.line[rows],
    )
    busy = works[events.name[rows[pieces.owner]]]
    return pieces.start[busy], pieces.end[busy]


def _count(start: Int64s, end: Int64s) -> Tiling:
    """How many of the intervals cover each instant."""
    bounds = distinct(start, end)
    begun = np.searchsorted(np.sort(start), bounds, side="right")
    ended = np.searchsorted(np.sort(end), bounds, side="right")
    return Tiling(bounds, (begun - ended)[:-1])


def _give_first_part(tiling: Tiling, amounts: Int64s) -> Tiling:
    """The first `amounts` of each tile become contention."""
    starts = tiling.bounds[:-1]
    start, end = starts[amounts > 0], (starts + amounts)[amounts > 0]
    begin, finish = int(tiling.bounds[0]), int(tiling.bounds[-1])
    taken = paint(begin, finish, [Layer(start, end, code("input.contention"))])
    bounds = distinct(tiling.bounds, taken.bounds)
    above = label_at(taken, bounds[:-1])
    below = label_at(tiling, bounds[:-1])
    return simplify(Tiling(bounds, np.where(above >= 0, above, below)))
