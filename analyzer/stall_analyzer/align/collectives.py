"""Where hosts meet: the collectives of each trace, and which of them are the same meeting.

A collective begins on a host when that host is ready, and ends on all of them at about the same
time. Its group and instance keys are the same on every host.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Meetings
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import ABSENT, rows_beginning, rows_called, stat_of
from stall_analyzer.model.units import NEVER, Int64s

# In these, all members wait for each other; the sender of a broadcast waits for nobody.
MEETINGS = ("CollectiveReduce", "CollectiveGather", "CollectiveAllToAll")


@dataclass(frozen=True)
class Collectives:
    """The collectives of one trace, in trace time; one row for all replicas of the host."""

    # [n, 4]: group, instance, the index among those with these two keys, and how many there are: if
    # a trace shows only part of a loop, its rounds cannot be matched with others.
    key: Int64s
    arrived_ps: Int64s  # when the last replica was ready
    ended_ps: Int64s
    hosts: int | None = None  # that take part, including this one, if the trace says so


@dataclass(frozen=True)
class MeetingTable:
    """Collectives that several traces show: a row for each, a column for each trace.

    Times are those of each trace; NEVER if it does not show the meeting.
    """

    arrived_ps: Int64s
    ended_ps: Int64s


def collectives_of(trace: Trace) -> Collectives:
    rows = rows_beginning(trace, MEETINGS)
    group, instance = (stat_of(trace, stat, rows) for stat in ("group_key", "instance_key"))
    known = (group != ABSENT) & (instance != ABSENT)
    start, end = trace.events.start_ps[rows[known]], trace.events.end_ps[rows[known]]
    group, instance = group[known], instance[known]
    if len(start) == 0:
        return Collectives(np.empty((0, 4), np.int64), start, end)
    order = np.lexsort((start, instance, group))
    start, end, group, instance = start[order], end[order], group[order], instance[order]
    other_keys = np.append(True, (np.diff(group) != 0) | (np.diff(instance) != 0))
    # Replicas of one host take part in parallel; a loop inside a graph reuses the same keys.
    opens = np.flatnonzero(other_keys | np.append(True, start[1:] >= end[:-1]))
    first_of_keys = np.flatnonzero(other_keys[opens])
    count = np.diff(np.append(first_of_keys, len(opens)))
    nth = np.arange(len(opens)) - np.repeat(first_of_keys, count)
    of_how_many = np.repeat(count, count)
    return Collectives(
        np.stack([group[opens], instance[opens], nth, of_how_many], axis=1),
        np.maximum.reduceat(start, opens),
        np.maximum.reduceat(end, opens),
        _hosts(trace, replicas=int(np.diff(np.append(opens, len(start))).max())),
    )


def _hosts(trace: Trace, replicas: int) -> int | None:
    """How many hosts meet, if all have as many replicas as this one."""
    sizes = stat_of(trace, "group_size", rows_called(trace, "CollectiveExecutor::CompleteParams"))
    most = int(sizes.max(initial=ABSENT))
    return most // replicas if most >= replicas else None


def meeting_table(parts: Sequence[Collectives]) -> MeetingTable:
    """Only collectives that at least two of the traces show."""
    key = np.concatenate([part.key for part in parts])
    column = np.repeat(np.arange(len(parts)), [len(part.key) for part in parts])
    _, row, seen = np.unique(key, axis=0, return_inverse=True, return_counts=True)
    shared = seen >= 2
    new_row = np.cumsum(shared) - 1
    kept = shared[row.ravel()]
    at = new_row[row.ravel()[kept]], column[kept]
    shape = int(shared.sum()), len(parts)
    arrived, ended = np.full(shape, NEVER), np.full(shape, NEVER)
    arrived[at] = np.concatenate([part.arrived_ps for part in parts])[kept]
    ended[at] = np.concatenate([part.ended_ps for part in parts])[kept]
    return MeetingTable(arrived, ended)


def meetings_of(
    parts: Sequence[Collectives], hosts: Sequence[str], shifts_ps: Sequence[int], window_ps: int
) -> Meetings | None:
    """Meetings inside the window, in window time (trace time + shift), with a column per host."""
    names = tuple(dict.fromkeys(hosts))
    if len(names) < 2:
        return None
    table = meeting_table(parts)
    shape = len(table.arrived_ps), len(names)
    arrived, ended = np.full(shape, NEVER), np.full(shape, NEVER)
    for part, (host, shift) in enumerate(zip(hosts, shifts_ps, strict=True)):
        seen = table.arrived_ps[:, part] != NEVER
        column = names.index(host)
        arrived[seen, column] = table.arrived_ps[seen, part] + shift
        ended[seen, column] = table.ended_ps[seen, part] + shift
    last = arrived.max(axis=1, initial=NEVER)
    several = (arrived != NEVER).sum(axis=1) >= 2
    inside = np.flatnonzero(several & (last >= 0) & (last < window_ps))
    inside = inside[np.argsort(last[inside], kind="stable")]
    return Meetings(names, arrived[inside], ended[inside]) if len(inside) else None
