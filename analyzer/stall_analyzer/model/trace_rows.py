"""Finding events of a trace by name and by stat, as row numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stall_analyzer.model.columns import rows_where
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import Bools, Int32s, Int64s

ABSENT = -(1 << 62)  # a stat that an event does not have


def names_where(trace: Trace, test: Callable[[str], bool]) -> Bools:
    """For each name of the trace, whether it passes the test; remembered, since several stages ask
    the same."""
    found = trace.passed.get(test)
    if found is None:
        found = np.fromiter(map(test, trace.names), np.bool_, len(trace.names))
        found.setflags(write=False)
        trace.passed[test] = found
    return found


def rows_named(trace: Trace, test: Callable[[str], bool]) -> Int64s:
    wanted = names_where(trace, test)
    return rows_where(wanted[trace.events.name]) if wanted.any() else np.empty(0, np.int64)


def rows_beginning(trace: Trace, prefix: str | tuple[str, ...]) -> Int64s:
    """Rows of events whose names begin with one of these."""
    found = [n for n, name in enumerate(trace.names) if name.startswith(prefix)]
    return rows_numbered(trace, found)


def rows_called(trace: Trace, *names: str) -> Int64s:
    """Rows of events with exactly one of these names."""
    return rows_numbered(trace, [trace.numbers[name] for name in names if name in trace.numbers])


def rows_numbered(trace: Trace, names: Sequence[int], within: slice | None = None) -> Int64s:
    """Rows of events whose names have these indices."""
    if not names:
        return np.empty(0, np.int64)
    span = within or slice(0, len(trace.events))
    name = trace.events.name[span]
    if len(names) == 1:  # as a rule, and several times faster than to look each event up
        rows = rows_where(name == names[0])
    else:
        wanted = np.zeros(len(trace.names), np.bool_)
        wanted[names] = True
        rows = rows_where(wanted.take(name))
    return rows + span.start if span.start else rows


def rows_of_line(trace: Trace, line: int) -> slice:
    return slice(trace.lines[line].first_event, trace.lines[line].last_event)


def rows_inside(span: slice, rows: Int64s | Int32s) -> Int64s:
    return np.asarray(rows[(rows >= span.start) & (rows < span.stop)], dtype=np.int64)


def outermost(trace: Trace, rows: Int64s) -> Int64s:
    """Of the rows of one line, those that do not begin inside an earlier one."""
    start = trace.events.start_ps[rows]
    end = start + trace.events.duration_ps[rows]
    return rows[start >= np.append(start[:1], np.maximum.accumulate(end)[:-1])]


def name_of(trace: Trace, row: int) -> str:
    return trace.names[int(trace.events.name[row])]


def rows_with(trace: Trace, stat: str) -> Int32s:
    """Rows that have a stat, in order."""
    column = trace.stats.get(stat)
    return column.event if column is not None else np.empty(0, dtype=np.int32)


def stat_of(trace: Trace, stat: str, rows: Int64s | Int32s) -> Int64s:
    """The integer (or string number) of a stat for each of `rows`, or ABSENT."""
    column = trace.stats.get(stat)
    if column is None or len(column.event) == 0:
        return np.full(len(rows), ABSENT, dtype=np.int64)
    carriers = column.event
    # Otherwise the whole column would be converted to int64.
    rows = rows.astype(carriers.dtype, copy=False)
    index = np.minimum(carriers.searchsorted(rows), len(carriers) - 1)
    return np.where(carriers[index] == rows, column.values[index], ABSENT)


def text_of(trace: Trace, stat: str, row: int) -> str:
    """The text of a stat of one event, empty if it has none."""
    column = trace.stats.get(stat)
    value = int(stat_of(trace, stat, np.array([row]))[0])
    if column is None or value == ABSENT:
        return ""
    return trace.strings[value] if column.kind == "text" else str(value)


def text_is(trace: Trace, stat: str, rows: Int64s | Int32s, test: Callable[[str], bool]) -> Bools:
    """Which of `rows` have a text that passes the test."""
    result = np.zeros(len(rows), dtype=np.bool_)
    column = trace.stats.get(stat)
    if column is None or column.kind != "text" or len(rows) == 0:
        return result
    values = stat_of(trace, stat, rows)
    present = values != ABSENT
    passes = np.zeros(len(trace.strings), dtype=np.bool_)
    passes[values[present]] = True
    for text in rows_where(passes).tolist():
        passes[text] = test(trace.strings[text])
    result[present] = passes[values[present]]
    return result
