"""When a cache or a snapshot was being filled: only in the first pass over the data."""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.intervals import union
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_named, rows_numbered
from stall_analyzer.model.units import Int64s

# Stages behind a cache run only while it is being filled. A snapshot has a stage that writes.
BEHIND_STORE = (
    "MemoryCacheImpl::", "FileCacheImpl::", "FileWriterIterator::", "SnapshotWriter",
)  # fmt: skip
STORES = ("MemoryCache", "FileCache", "Snapshot")


def filling_spans(trace: Trace) -> tuple[Int64s, Int64s]:
    """Disjoint intervals in order, in trace time.

    What the store itself does in the meantime (writing to disk, starting what is behind it) is part
    of filling it.
    """
    events, nothing = trace.events, np.empty(0, np.int64)
    all_names = "\n".join(trace.names)
    if not any(mark in all_names for mark in BEHIND_STORE):
        return nothing, nothing
    store_of = {n: store for n, name in enumerate(trace.names) if (store := _store_of(name))}
    behind = rows_numbered(trace, list(store_of))
    if len(behind) == 0:
        return nothing, nothing
    stores = set(store_of.values())
    own = rows_named(trace, lambda name: any(_is_stage_of(name, store) for store in stores))
    begin, end = events.start_ps[behind].min(), events.end_ps[behind].max()
    own = own[(events.end_ps[own] > begin) & (events.start_ps[own] < end)]
    rows = np.concatenate([behind, own])
    return union(events.start_ps[rows], events.end_ps[rows])


def _store_of(name: str) -> str:
    """For a stage behind a store, the path of the stages around the store; else nothing."""
    return next((name.partition(mark)[0] for mark in BEHIND_STORE if mark in name), "")


def _is_stage_of(name: str, around: str) -> bool:
    stage = name.removeprefix(around)
    return stage != name and stage.startswith(STORES) and "::" not in stage
