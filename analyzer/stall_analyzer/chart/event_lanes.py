"""Lanes of events as the profiler saw them: one for each thread, however short its events.

The analysis merges short events. In a timeline they matter, so the traces are read again, in full.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from stall_analyzer.chart.chart_columns import Argument, Lane, Names, lane_of
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.decode.device_events import DEVICE_PREFIXES
from stall_analyzer.decode.trace_cache import CachedTrace
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import names_where, rows_of_line
from stall_analyzer.model.units import Bools, Int64s
from stall_analyzer.signals.signals import Signals

MOST_ROWS = 24  # deeper calls, mostly from the Python tracer, would fill the screen
THREADS = "threads"
# Wraps each handful of ops on every executor thread: it hides what ran and says nothing.
WRAPPERS = frozenset({"ExecutorState::Process"})
# Links between events on different threads; numbers that mean nothing to a reader.
INTERNAL_STATS = frozenset({"_r", "_p", "_c", "group_id", "correlation_id", "run_id", "program_id"})

# Some events of a trace, to be shown in one lane: those of a thread or stream.
Part: TypeAlias = tuple[AlignedTrace, Int64s]


def in_full(aligned: AlignedTrace) -> AlignedTrace:
    """The trace with every event, if the file can be read again; its lines are the same."""
    source = aligned.source
    if not isinstance(source, CachedTrace):
        return aligned
    try:
        trace = read_trace(source.file, in_full=True)
    except UnreadableFile:
        return aligned
    is_same = len(trace.lines) == len(source.read().lines)  # unless it is being written
    return replace(aligned, source=trace) if is_same else aligned


def thread_lanes(signals: Signals, traces: Sequence[AlignedTrace], names: Names) -> Iterator[Lane]:
    """All threads except the one that trains, the busiest first."""
    found: dict[tuple[str, int], list[Part]] = {}
    for aligned in traces:
        trace = aligned.trace
        for number, line in enumerate(trace.lines):
            is_shown = not trace.planes[line.plane].name.startswith(DEVICE_PREFIXES)
            is_training = aligned.training is not None and aligned.training.line == number
            if is_shown and not is_training and line.last_event > line.first_event:
                key = line.name or str(line.id), line.id
                found.setdefault(key, []).append(part_of(aligned, number))
    parts = sorted(found.items(), key=lambda item: -sum(map(_busy_ps, item[1])))
    titles = readable([name for (name, _), _ in parts])
    for title, ((name, id), mine) in zip(titles, parts, strict=True):
        label = f"thread/{name}/{id}", title, THREADS
        yield events_lane(label, signals.window_ps, mine, names, WRAPPERS)


def readable(names: Sequence[str]) -> list[str]:
    """`tf_Compute/8053202864825525804` -> `tf_Compute 2`: a pool's threads are numbered in
    order."""
    pools = [re.sub(r"[/_-]+-?\d+$", "", name) or name for name in names]
    sizes, seen = Counter(pools), Counter[str]()
    titles = []
    for pool in pools:
        seen[pool] += 1
        titles.append(f"{pool} {seen[pool]}" if sizes[pool] > 1 else pool)
    return titles


def part_of(aligned: AlignedTrace, line: int) -> Part:
    span = rows_of_line(aligned.trace, line)
    return aligned, np.arange(span.start, span.stop)


def events_lane(
    label: tuple[str, str, str],
    window_ps: int,
    parts: Sequence[Part],
    names: Names,
    wrappers: frozenset[str] = frozenset(),
) -> Lane:
    """The events of lines, each in the row of its nesting depth; `wrappers` are left out."""
    found = [(_NONE, _NONE, _NONE, _NONE)]
    arguments: list[Argument] = []
    count = 0
    for aligned, all_rows in parts:
        trace = aligned.trace
        is_left_out = names_where(trace, lambda name: name in wrappers)[trace.events.name]
        depth = _depth(trace, all_rows, is_left_out)
        is_shown = (depth < MOST_ROWS) & ~is_left_out[all_rows]
        rows = all_rows[is_shown]
        found.append((*window_times(aligned, rows), _labels(trace, rows, names), depth[is_shown]))
        arguments += _arguments(trace, rows, count, names)
        count += len(rows)
    start, end, name, row = (np.concatenate(column) for column in zip(*found, strict=True))
    return lane_of(label, window_ps, start, end, name, row, _put_together(arguments))


def window_times(aligned: AlignedTrace, rows: Int64s) -> tuple[Int64s, Int64s]:
    events = aligned.trace.events
    return events.start_ps[rows] + aligned.shift_ps, events.end_ps[rows] + aligned.shift_ps


def _busy_ps(part: Part) -> int:
    aligned, rows = part
    events = aligned.trace.events
    outermost = rows[events.parent[rows] < 0]
    return int(events.duration_ps[outermost].sum())


def _labels(trace: Trace, rows: Int64s, names: Names) -> Int64s:
    """Each event's name, numbered; each name is looked up once."""
    used, where = np.unique(trace.events.name[rows], return_inverse=True)
    return names.table(trace.names[index] for index in used)[where]


def _depth(trace: Trace, rows: Int64s, is_left_out: Bools) -> Int64s:
    """How many shown events are around each event, as far as rows are shown."""
    depth = np.zeros(len(rows), dtype=np.int64)
    around = trace.events.parent[rows]
    for _ in range(2 * MOST_ROWS):  # at most one wrapper around each
        if not (around >= 0).any():
            break
        depth += (around >= 0) & ~is_left_out[around]
        around = np.where(around >= 0, trace.events.parent[around], -1)
    return depth


def _arguments(trace: Trace, rows: Int64s, offset: int, names: Names) -> Iterator[Argument]:
    """The stats of some rows, which are in order; their indices count from `offset`."""
    for stat, column in trace.stats.items():
        if stat in INTERNAL_STATS or not len(rows):
            continue
        at = np.searchsorted(rows, column.event)
        found = np.flatnonzero(rows[np.minimum(at, len(rows) - 1)] == column.event)
        value = column.values[found]
        if column.kind == "text":
            used, where = np.unique(value, return_inverse=True)
            value = names.table(trace.strings[index] for index in used)[where]
        if len(found):
            yield Argument(stat, column.kind, at[found] + offset, value)


def _put_together(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Arguments with the same name, one session after the other."""
    for name, kind in dict.fromkeys((one.name, one.kind) for one in arguments):
        same = [one for one in arguments if (one.name, one.kind) == (name, kind)]
        at = np.concatenate([one.at for one in same])
        yield Argument(name, kind, at, np.concatenate([one.value for one in same]))


_NONE = np.empty(0, dtype=np.int64)
