"""Ops that waited for memory.

The allocator's retry has no event of its own. It shows as an op that starts and allocates only long
after, because less was free at its start than it asked for; or that never allocates and fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stall_analyzer.align.training_thread import HOST_PLANE
from stall_analyzer.attribute.executor import Region
from stall_analyzer.decode.vocabulary import is_op
from stall_analyzer.model.timeline import TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import ABSENT, rows_called, rows_named, stat_of
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S, Int64s

# Allocating takes microseconds; anything longer before the allocation is a wait or real work.
WAIT_FROM_PS = PS_PER_MS
# The runtime retries for ten seconds before it gives up; a failing op that took less than a
# second failed for another reason.
OUT_OF_MEMORY_FROM_PS = PS_PER_S


def allocator_rows(trace: Trace) -> Int64s:
    """Allocations and frees, in order of time."""
    rows = rows_called(trace, "MemoryAllocation", "MemoryDeallocation")
    return rows[np.argsort(trace.events.start_ps[rows], kind="stable")]


def allocator_regions(trace: Trace, training: TrainingThread) -> Iterator[Region]:
    rows = allocator_rows(trace)
    if len(rows) == 0:
        return
    events = trace.events
    allocations = rows[stat_of(trace, "requested_bytes", rows) != ABSENT][::-1]
    first_of = dict(zip(events.parent[allocations].tolist(), allocations.tolist(), strict=True))
    pools = _Pools(trace, rows)
    failed = _failed_calls(trace, training)
    for op in _long_ops(trace).tolist():
        allocation = first_of.get(op)
        start, end, line = int(events.start_ps[op]), int(events.end_ps[op]), int(events.line[op])
        if allocation is None:
            if end - start > OUT_OF_MEMORY_FROM_PS and _within(failed, start):
                yield Region(line, start, end, "memory.out_of_memory")
            continue
        granted = int(events.start_ps[allocation])
        if granted - start > WAIT_FROM_PS and pools.was_short(allocation, start):
            yield Region(line, start, granted, "memory.allocator_wait")


class _Pools:
    """What was free in each allocator at any time."""

    def __init__(self, trace: Trace, rows: Int64s) -> None:
        self._trace, self._rows = trace, rows
        self._pool = stat_of(trace, "allocator_name", rows)
        self._available = stat_of(trace, "bytes_available", rows)

    def was_short(self, allocation: int, at_ps: int) -> bool:
        """Whether the allocator had less at that time than was then taken from it."""
        row = np.array([allocation])
        mine = self._pool == stat_of(self._trace, "allocator_name", row)[0]
        times = self._trace.events.start_ps[self._rows[mine]]
        before = int(np.searchsorted(times, at_ps, side="right")) - 1
        requested = int(stat_of(self._trace, "requested_bytes", row)[0])
        return before >= 0 and ABSENT < int(self._available[mine][before]) < requested


def _long_ops(trace: Trace) -> Int64s:
    events = trace.events
    ops = rows_named(trace, is_op)
    on_host = np.array([trace.planes[line.plane].name == HOST_PLANE for line in trace.lines])
    long = (events.duration_ps[ops] > WAIT_FROM_PS) & on_host[events.line[ops]]
    return np.asarray(ops[long], dtype=np.int64)


def _failed_calls(trace: Trace, training: TrainingThread) -> list[tuple[int, int]]:
    """Graph runs outside of any successful call: a call that raised leaves no stat."""
    runs = training.runs
    return [
        (int(start), int(end))
        for start, end, call in zip(runs.start_ps, runs.end_ps, runs.call, strict=True)
        if call < 0
    ]


def _within(intervals: list[tuple[int, int]], at: int) -> bool:
    return any(start <= at < end for start, end in intervals)
