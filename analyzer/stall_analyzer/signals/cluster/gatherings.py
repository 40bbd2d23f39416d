"""Meetings of hosts, one after another: who came last, what that cost, and what it was doing.

Between two meetings each host works independently, and all start together. So what the last one did
for longer than the others, cause by cause, adds up to the time that they waited.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.model.causes import CAUSES
from stall_analyzer.model.intervals import Tiling, refine, union
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Meetings
from stall_analyzer.model.units import NEVER, Float64s, Int64s


@dataclass(frozen=True)
class Gatherings:
    """Meetings that overlap are one gathering: waiting for several at once is waiting once."""

    hosts: tuple[str, ...]
    last: Int64s  # of each gathering, who came last: an index into `hosts`
    cost_ps: Int64s  # how long the others waited for it, on average
    start_ps: Int64s  # when the others arrived, on average, and when the last one did
    end_ps: Int64s
    waited_ps: Int64s  # [gathering, host]: how long each waited; NEVER where it took no part
    beyond_ps: Float64s  # [gathering, cause]: how much longer the last took than the others

    def __len__(self) -> int:
        return len(self.last)


def gatherings_of(meetings: Meetings, ledgers: Sequence[HostLedger]) -> Gatherings:
    number = _numbers(meetings)
    count = int(number.max()) + 1
    hosts = len(meetings.hosts)
    arrived = np.full((count, hosts), NEVER)
    ended = np.full((count, hosts), NEVER)
    waited = np.full((count, hosts), NEVER)
    waits = _waits(meetings)
    for host in range(hosts):
        there = np.flatnonzero(meetings.arrived_ps[:, host] != NEVER)
        of = number[there]
        first = np.flatnonzero(np.diff(of, prepend=-1))
        if len(there) == 0:
            continue
        begin, end = meetings.arrived_ps[there, host], meetings.ended_ps[there, host]
        arrived[of[first], host] = np.minimum.reduceat(begin, first)
        ended[of[first], host] = np.maximum.reduceat(end, first)
        waited[of[first], host] = _union_lengths(begin, begin + waits[there, host], of, first)
    present = waited != NEVER
    last = np.where(present, waited, 1 << 62).argmin(axis=1)
    rows = np.arange(count)
    others = present.sum(axis=1) - 1
    own = waited[rows, last]
    cost = (np.where(present, waited, 0).sum(axis=1) - own) // others - own
    came = arrived[rows, last]
    beyond = _beyond(meetings.hosts, arrived, ended, last, ledgers)
    return Gatherings(meetings.hosts, last, cost, came - cost, came, waited, beyond)


def _numbers(meetings: Meetings) -> Int64s:
    """The gathering of each meeting. A meeting that begins on a host that is still in an earlier
    one belongs to the same gathering."""
    busy_until = np.full(len(meetings.hosts), NEVER)
    number = np.zeros(len(meetings), dtype=np.int64)
    current = -1
    for row in range(len(meetings)):
        arrived, ended = meetings.arrived_ps[row], meetings.ended_ps[row]
        there = arrived != NEVER
        if current < 0 or not (arrived[there] < busy_until[there]).any():
            current += 1
        number[row] = current
        busy_until = np.where(there, np.maximum(busy_until, ended), busy_until)
    return number


def _waits(meetings: Meetings) -> Int64s:
    """How much longer each meeting took here than for the one who came last. These are lengths, not
    times, so clocks need not agree."""
    there = meetings.arrived_ps != NEVER
    lengths = np.where(there, meetings.ended_ps - meetings.arrived_ps, 1 << 62)
    return np.asarray(lengths - lengths.min(axis=1, keepdims=True), dtype=np.int64)


def _union_lengths(start: Int64s, end: Int64s, number: Int64s, first: Int64s) -> Int64s:
    """Per gathering, how long at least one of its intervals lasted."""
    if len(first) == len(start):
        return end - start
    merged_start, merged_end = union(start, end)
    at = np.searchsorted(start[first], merged_start, side="right") - 1
    lengths = np.bincount(at, weights=merged_end - merged_start, minlength=len(first))
    return lengths.astype(np.int64)


def _beyond(
    names: Sequence[str],
    arrived: Int64s,
    ended: Int64s,
    last: Int64s,
    ledgers: Sequence[HostLedger],
) -> Float64s:
    """On the way to each gathering: the last one's time per cause, minus the others' average."""
    all_hosts = np.zeros((len(last), len(CAUSES)))
    its_own = np.zeros_like(all_hosts)
    others = np.zeros(len(last))
    for host, name in enumerate(names):
        ledger = next(entry.ledger for entry in ledgers if entry.host == name)
        there = np.flatnonzero(arrived[:, host] != NEVER)
        come_from = np.append(0, ended[there[:-1], host]) if len(there) else there
        on_the_way = _time_by_cause(ledger.tiling, come_from, arrived[there, host])
        all_hosts[there] += on_the_way
        others[there] += 1
        mine = last[there] == host
        its_own[there[mine]] = on_the_way[mine]
    others -= 1
    return np.asarray(its_own - (all_hosts - its_own) / others[:, None])


def _time_by_cause(tiling: Tiling, start: Int64s, end: Int64s) -> Float64s:
    """[interval, cause] for disjoint intervals in order."""
    start = np.minimum(np.maximum.accumulate(start), end) if len(start) else start
    fine = refine(tiling, np.concatenate([start, end]))
    at, lengths = fine.bounds[:-1], np.diff(fine.bounds)
    interval = np.searchsorted(start, at, side="right") - 1
    inside = interval >= 0
    inside[inside] = at[inside] < end[interval[inside]]
    cell = interval[inside] * len(CAUSES) + fine.labels[inside]
    sums = np.bincount(cell, weights=lengths[inside], minlength=len(start) * len(CAUSES))
    return np.asarray(sums, dtype=np.float64).reshape(len(start), len(CAUSES))
