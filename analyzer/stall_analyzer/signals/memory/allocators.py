"""What the allocators recorded: how much memory was in use, how much there was, who waited for it.

On a CPU, oneDNN's allocator counts its large blocks and has no limit. A pool with a limit ("bfc" in
its name) exists on every GPU, and on a CPU if TF_CPU_ALLOCATOR_USE_BFC asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.attribute.allocator_waits import allocator_regions, allocator_rows
from stall_analyzer.attribute.executor import Region
from stall_analyzer.decode.vocabulary import BIT_GRADIENT, is_op
from stall_analyzer.model.columns import distinct
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import (
    ABSENT,
    name_of,
    names_where,
    rows_called,
    rows_named,
    stat_of,
    text_is,
    text_of,
)
from stall_analyzer.model.units import Int64s

POOL = "bfc"
NUMBERED = "device "


@dataclass(frozen=True)
class AllocatorSignals:
    """One allocator, over the traced part of the first epoch."""

    name: str
    events: int
    limit_bytes: int | None  # None: it has none, or does not say
    peak_bytes: int  # requested and held at once; a pool may hand out larger blocks
    largest_request_bytes: int
    kept_bytes: Int64s  # least in use between each training step and the next

    @property
    def times_larger(self) -> int:
        """How many times its peak it could hold; 0 where it has no limit."""
        return (self.limit_bytes or 0) // max(self.peak_bytes, 1)


@dataclass(frozen=True)
class MemoryWait:
    """An op that waited for memory, successfully or not; in window time."""

    allocator: str  # empty where nothing says which
    op: str
    start_ps: int
    end_ps: int
    asked_bytes: int | None  # a request that fails is not recorded
    available_bytes: int | None  # when it asked
    failed: bool


def allocator_signals(traces: Sequence[AlignedTrace]) -> tuple[AllocatorSignals, ...]:
    """Every allocator in the traces, the busiest first."""
    found = [
        _one_allocator(aligned, name, rows)
        for aligned in traces
        for name, rows in _by_allocator(aligned).items()
    ]
    return tuple(sorted(found, key=lambda allocator: -allocator.events))


def memory_in_use(traces: Sequence[AlignedTrace]) -> dict[str, tuple[Int64s, Int64s]]:
    """Per allocator, when it recorded how much was in use, in window time, and how many bytes."""
    found: dict[str, tuple[Int64s, Int64s]] = {}
    for aligned in traces:
        for name, rows in _by_allocator(aligned).items():
            in_use = stat_of(aligned.trace, "bytes_allocated", rows)
            # What a TPU reserves for its programs is not handed out, but still in use.
            in_use = in_use + np.maximum(stat_of(aligned.trace, "bytes_reserved", rows), 0)
            at = aligned.trace.events.start_ps[rows] + aligned.shift_ps
            known = in_use >= 0
            before = found.get(name, (at[:0], in_use[:0]))
            found[name] = (
                np.concatenate([before[0], at[known]]),
                np.concatenate([before[1], in_use[known]]),
            )
    return found


def memory_waits(traces: Sequence[AlignedTrace]) -> tuple[MemoryWait, ...]:
    """Every wait that the ledger counts as memory, with what is known about it."""
    return tuple(
        _wait(aligned, region)
        for aligned in traces
        if aligned.training is not None
        for region in allocator_regions(aligned.trace, aligned.training)
    )


def _by_allocator(aligned: AlignedTrace) -> dict[str, Int64s]:
    """Rows of each allocator inside the window, in order of time."""
    trace = aligned.trace
    rows = allocator_rows(trace)
    begin, end = aligned.covered_ps
    at = trace.events.start_ps[rows] + aligned.shift_ps
    rows = rows[(at >= begin) & (at < end)]
    names = stat_of(trace, "allocator_name", rows)
    found = {trace.strings[n]: rows[names == n] for n in distinct(names[names != ABSENT])}
    numbers = stat_of(trace, "index_on_host", rows)  # TPUs number their memories
    numbers[names != ABSENT] = ABSENT
    mine = distinct(numbers[numbers != ABSENT])
    return found | {f"{NUMBERED}{n}": rows[numbers == n] for n in mine}


def _one_allocator(aligned: AlignedTrace, name: str, rows: Int64s) -> AllocatorSignals:
    trace = aligned.trace
    rows = rows[stat_of(trace, "bytes_allocated", rows) != ABSENT]
    in_use = stat_of(trace, "bytes_allocated", rows)
    available = stat_of(trace, "bytes_available", rows)
    requested = stat_of(trace, "requested_bytes", rows)
    asked = in_use - _surplus(trace, rows)
    known = available != ABSENT
    is_pool = POOL in name.lower() and bool(known.any())
    return AllocatorSignals(
        name=name,
        events=len(rows),
        limit_bytes=int((in_use + available)[known].max()) if is_pool else None,
        peak_bytes=max(int(asked.max(initial=0)), 0),
        largest_request_bytes=max(int(requested.max(initial=0)), 0),
        kept_bytes=_kept(aligned, trace.events.start_ps[rows], in_use),
    )


def _surplus(trace: Trace, rows: Int64s) -> Int64s:
    """After each event, how many bytes were handed out beyond what was requested."""
    requested = stat_of(trace, "requested_bytes", rows)
    given = stat_of(trace, "allocation_bytes", rows)
    surplus = np.where((requested != ABSENT) & (given != ABSENT), given - requested, 0)
    allocates = names_where(trace, lambda name: name == "MemoryAllocation")
    surplus[~allocates[trace.events.name[rows]]] *= -1
    return np.asarray(np.maximum(np.cumsum(surplus), 0), dtype=np.int64)


def _kept(aligned: AlignedTrace, at: Int64s, in_use: Int64s) -> Int64s:
    """Temporaries of a step come and go; what is left before the next step is kept."""
    if aligned.training is None or len(at) == 0:
        return np.empty(0, dtype=np.int64)
    calls = aligned.training.calls
    begin, end = (bound - aligned.shift_ps for bound in aligned.covered_ps)
    trains = (calls.bits & BIT_GRADIENT > 0) & (calls.end_ps >= max(begin, int(at[0])))
    trains &= calls.end_ps <= end
    done, again = calls.end_ps[trains][:-1], calls.start_ps[trains][1:]
    first = np.maximum(np.searchsorted(at, done, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(at, again, side="left"), first + 1)
    least = [in_use[i:j].min() for i, j in zip(first, last, strict=True)]
    return np.array(least, dtype=np.int64)


def _wait(aligned: AlignedTrace, region: Region) -> MemoryWait:
    trace = aligned.trace
    events = trace.events
    ops = rows_named(trace, is_op)
    here = (events.line[ops] == region.line) & (events.start_ps[ops] == region.start_ps)
    op = int(ops[here][0])
    node = name_of(trace, op).rpartition(":")[0]
    failed = region.cause == "memory.out_of_memory"
    asked, allocator = _request(trace, op, node, failed)
    rows = allocator_rows(trace)
    if allocator:
        rows = rows[text_is(trace, "allocator_name", rows, lambda name: name == allocator)]
    before = rows[events.start_ps[rows] <= region.start_ps]
    free = int(stat_of(trace, "bytes_available", before[-1:])[0]) if len(before) else ABSENT
    return MemoryWait(
        allocator=allocator or (text_of(trace, "allocator_name", before[-1]) if failed else ""),
        op=node,
        start_ps=region.start_ps + aligned.shift_ps,
        end_ps=region.end_ps + aligned.shift_ps,
        asked_bytes=asked,
        available_bytes=free if free != ABSENT else None,
        failed=failed,
    )


def _request(trace: Trace, op: int, node: str, failed: bool) -> tuple[int | None, str]:
    """What the op asked for, and which allocator: this time or, if it failed, in earlier steps."""
    rows = rows_called(trace, "MemoryAllocation")
    if failed:
        mine = rows[text_is(trace, "tf_op", rows, lambda text: text == node)]
    else:
        mine = rows[trace.events.parent[rows] == op][:1]
    if len(mine) == 0:
        return None, ""
    requested = stat_of(trace, "requested_bytes", mine)
    largest = int(requested.argmax())
    return int(requested[largest]), text_of(trace, "allocator_name", int(mine[largest]))
