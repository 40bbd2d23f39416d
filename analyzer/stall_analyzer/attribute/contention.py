"""What background input takes from a step on the CPU: cores, and the interpreter.

Such input is always on time, so nothing waits, and yet the step is slow. The estimate follows the
operating system's scheduler: a step with p busy threads next to q of the pipeline gets cores / (p +
q) of what it needs as soon as p + q exceeds the number of cores. What the step does not get is
input time.

A long op spreads over all cores through the intra-op threads, whose work has no events of its own.
Such an op ends with its slowest part, and a part that shares its core takes twice as long unless
work moves to other cores; the truth lies between, and so does the estimate (`STAYS_PUT`).

Caches and hyperthreads matter as well, and no trace shows them. But if input pauses now and then,
the run itself shows how long a step takes without it: the estimate is scaled to that.

Stages that only wait for other stages do not count, nor do threads inside Python functions, which
may be asleep, unless the training thread was seen to wait for them (`interruptions`, which also
estimates what its Python and the starting of ops lose), or steps took longer while they ran
(`python_beside`). tests/scenarios (in_contention, in_contention_jpeg, controls) compares it with
real controls.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.attribute.executor import Work
from stall_analyzer.attribute.interruptions import interruptions
from stall_analyzer.attribute.python_beside import computes_beside
from stall_analyzer.decode.vocabulary import (
    INTRA_OP_THREADS,
    OP_KEEP_FROM_PS,
    PIPELINE_THREADS,
    calls_python,
    is_op,
)
from stall_analyzer.model.causes import code, codes
from stall_analyzer.model.columns import MERGED, distinct
from stall_analyzer.model.intervals import (
    Layer,
    Tiling,
    among,
    covered,
    innermost,
    label_at,
    overlay,
    paint,
    union,
)
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_named
from stall_analyzer.model.units import Bools, Float64s, Int64s

# How much of an op's work stays on the core it was assigned to. The mean of 16 controls on two
# cores.
STAYS_PUT = 2 / 3
# A step that loses less than this to input is undisturbed; it is calm if the one before was, too.
DISTURBED_SHARE = 0.01
LEAST_CALM_STEPS = 40
WARM_UP_STEPS = 2
NEIGHBORS = 9  # calm steps: the machine's own speed hardly drifts over so few
# Steps that differ or scatter by more do so for other reasons.
LEAST_FACTOR, MOST_FACTOR = 0.5, 2.0
MOST_SCATTER = 0.1
COMPUTE = codes("compute.step", "compute.runtime", "compute.warm_up", "compute.eager_op")
# Stages whose own time is waiting for the threads that do their work.
WAITING_STAGES = (
    "Prefetch", "ParallelMap", "MapAndBatch", "ParallelInterleave", "ParallelBatch", "Root",
    "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "FiniteTake", "FiniteSkip", "Generator",
)  # fmt: skip


def with_contention(
    tiling: Tiling, trace: Trace, own: Work, others: Work, steps: tuple[Int64s, Int64s]
) -> Tiling:
    """`steps`: when each training step begins and ends."""
    cores = _cores(trace)
    if cores is None:
        return tiling
    on_pipeline = pipeline_lines(trace)
    native = _native_work(trace, others, on_pipeline)
    python = _python_functions(trace, on_pipeline)
    if not (len(native[0]) or len(python[0])):
        return tiling
    usual = (steps[0][WARM_UP_STEPS:], steps[1][WARM_UP_STEPS:])
    computes = computes_beside(tiling, usual, COMPUTE, python, _lost_to_one_thread(cores))
    own_work = interruptions(tiling, usual[0], native, union(*python), computes)
    working = (native, union(*python)) if own_work.python_is_awake else (native,)
    taking = _count(*(np.concatenate(bounds) for bounds in zip(*working, strict=True)))
    computing = own.label == code("compute.step")
    busy = _count(own.start[computing], own.end[computing])
    spread = _spread_ops(trace, on_pipeline)
    length = np.where(among(tiling.labels, COMPUTE), np.diff(tiling.bounds), 0.0)
    per_tile = np.minimum(_lost_to_busy_threads(tiling, busy, taking, spread, cores), length)
    factor = _against_calm_steps(
        _within(tiling.bounds, length, steps), _within(tiling.bounds, per_tile, steps)
    )
    taken = np.minimum(per_tile * factor, length) + own_work.lost
    return _give_first_part(tiling, taken.astype(np.int64))


def _lost_to_busy_threads(
    tiling: Tiling, busy: Tiling, taking: Tiling, spread: tuple[Int64s, Int64s], cores: int
) -> Float64s:
    """What each tile would lose if its step had all of the `busy` threads at work."""
    fine = distinct(tiling.bounds, busy.bounds, taking.bounds)
    fine = fine[(fine >= tiling.bounds[0]) & (fine <= tiling.bounds[-1])]
    at = fine[:-1]
    lost = np.diff(fine) * _lost_share(
        np.maximum(label_at(busy, at), 1),
        np.maximum(label_at(taking, at), 0),
        covered(at, *spread),
        cores,
    )
    tile = np.searchsorted(tiling.bounds, at, side="right") - 1
    return np.bincount(tile, weights=lost, minlength=len(tiling.labels)).astype(np.float64)


def _within(bounds: Int64s, amount: Float64s, steps: tuple[Int64s, Int64s]) -> Float64s:
    """How much of the tiles' amounts is in each step."""
    sums = np.concatenate([[0.0], np.cumsum(amount)])
    begin, end = (np.interp(moments, bounds, sums) for moments in steps)
    return np.asarray(end - begin)


def _against_calm_steps(compute: Float64s, lost: Float64s) -> float:
    """How much the steps lose according to their length, divided by what the estimate says."""
    compute, lost = compute[WARM_UP_STEPS:], lost[WARM_UP_STEPS:]
    disturbed = lost >= DISTURBED_SHARE * compute
    calm = ~disturbed
    calm[1:] &= ~disturbed[:-1]
    at = np.flatnonzero(calm)
    estimate = lost[~calm].sum()
    if len(at) < LEAST_CALM_STEPS or estimate <= 0:
        return 1.0
    usual = np.convolve(compute[at], np.ones(NEIGHBORS) / NEIGHBORS, mode="valid")
    around = NEIGHBORS // 2
    undisturbed = np.interp(np.arange(len(compute)), at[around:-around], usual)
    scatter = (compute[at] - undisturbed[at]).std() * (~calm).sum() / np.sqrt(len(at))
    factor = float((compute - undisturbed)[~calm].sum() / estimate)
    is_telling = LEAST_FACTOR <= factor <= MOST_FACTOR and scatter <= MOST_SCATTER * estimate
    return factor if is_telling else 1.0


def _lost_share(p: Int64s, q: Int64s, spread: Bools, cores: int) -> Float64s:
    """The share of its time that a step with p busy threads loses to q threads of the pipeline."""
    p = np.minimum(np.where(spread, cores, p), cores)
    balanced = 1 - np.minimum(cores / (p + q), 1)
    slowest_part = np.where(spread & (q > 0), np.maximum(balanced, 0.5), balanced)
    shared_cores = np.minimum(2 * q / cores, 1)
    return np.asarray(balanced + STAYS_PUT * shared_cores * (slowest_part - balanced))


def _lost_to_one_thread(cores: int) -> float:
    """What a step that keeps all cores busy loses."""
    one = np.ones(1, dtype=np.int64)
    return float(_lost_share(cores * one, one, np.ones(1, dtype=np.bool_), cores)[0])


def _spread_ops(trace: Trace, on_pipeline: Bools) -> tuple[Int64s, Int64s]:
    """When an op of the step was long enough to be worth spreading over the intra-op threads."""
    if not any(INTRA_OP_THREADS in line.name for line in trace.lines):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    events = trace.events
    ops = rows_named(trace, is_op)
    long = (events.duration_ps[ops] >= OP_KEEP_FROM_PS) & ~on_pipeline[events.line[ops]]
    return union(events.start_ps[ops[long]], events.end_ps[ops[long]])


def _cores(trace: Trace) -> int | None:
    """tf.data records how many cores it may use; older versions do not."""
    column = trace.stats.get("cpu_budget")
    most = int(column.values.max()) if column is not None and len(column.values) else 0
    return most if most > 0 else None


def pipeline_lines(trace: Trace) -> Bools:
    """Which lines are threads of tf.data."""
    return np.array([line.name.startswith(PIPELINE_THREADS) for line in trace.lines], np.bool_)


def _native_work(trace: Trace, others: Work, on_pipeline: Bools) -> tuple[Int64s, Int64s]:
    """When threads of the pipeline computed, each thread separately."""
    running = (others.label == code("compute.step")) & on_pipeline[others.line]
    stages = _busy_stages(trace, on_pipeline)
    return (
        np.concatenate([others.start[running], stages[0]]),
        np.concatenate([others.end[running], stages[1]]),
    )


def python_rows(trace: Trace) -> Int64s:
    """Calls of Python functions by graphs."""
    return rows_named(trace, calls_python)


def _python_functions(trace: Trace, on_pipeline: Bools) -> tuple[Int64s, Int64s]:
    """The calls of Python functions by threads of the pipeline."""
    events = trace.events
    rows = python_rows(trace)
    rows = rows[on_pipeline[events.line[rows]]]
    return events.start_ps[rows], events.end_ps[rows]


def _busy_stages(trace: Trace, on_pipeline: Bools) -> tuple[Int64s, Int64s]:
    """Stages of the pipeline that work on their own thread: copying, decoding, shuffling."""
    events = trace.events
    works = np.fromiter(
        (
            name == "ExecutorDoneCallback"
            or (
                name.startswith("Iterator::")
                and not name.rpartition("::")[2].split("[")[0].startswith(WAITING_STAGES)
            )
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
    begun = np.searchsorted(np.sort(start, kind=MERGED), bounds, side="right")
    ended = np.searchsorted(np.sort(end, kind=MERGED), bounds, side="right")
    return Tiling(bounds, (begun - ended)[:-1])


def _give_first_part(tiling: Tiling, amounts: Int64s) -> Tiling:
    """The first `amounts` of each tile become contention."""
    starts = tiling.bounds[:-1]
    start, end = starts[amounts > 0], (starts + amounts)[amounts > 0]
    begin, finish = int(tiling.bounds[0]), int(tiling.bounds[-1])
    taken = paint(begin, finish, [Layer(start, end, code("input.contention"))])
    return overlay(taken, tiling)
