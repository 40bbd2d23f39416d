"""How long each host waited for the others in their common collectives.

Hosts meet in a collective: it begins on each host when that host is ready and ends on all of them
at about the same time. The last one to come waits least. Only lengths are compared, so that clocks
of different hosts need not agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stall_analyzer.model import AlignedTrace, Trace
from stall_analyzer.names import ABSENT, rows_named, stat_of

Meeting = tuple[int, int]  # group_key, instance_key


@dataclass(frozen=True)
class CollectiveSignals:
    """Collectives in which at least two of the traced hosts took part, without the first one."""

    meetings: int
    waited_ps: dict[str, int]  # per host: how long it waited for the last one to come
    last_to_come: dict[str, int]  # per host: in how many meetings it was the last


def collective_signals(traces: Sequence[AlignedTrace]) -> CollectiveSignals:
    lengths: dict[Meeting, dict[str, int]] = {}
    for aligned in traces:
        for meeting, length in _collectives(aligned.trace).items():
            lengths.setdefault(meeting, {})[aligned.trace.host] = length
    shared = [by_host for by_host in lengths.values() if len(by_host) > 1]
    waited: dict[str, int] = {}
    last: dict[str, int] = {}
    for by_host in shared[1:]:  # to the first one they come from tracing, each in its own time
        shortest = min(by_host, key=lambda host: by_host[host])
        last[shortest] = last.get(shortest, 0) + 1
        for host, length in by_host.items():
            waited[host] = waited.get(host, 0) + length - by_host[shortest]
    return CollectiveSignals(max(len(shared) - 1, 0), waited, last)


def _collectives(trace: Trace) -> dict[Meeting, int]:
    """In order of time, how long each took here; if it ran again under the same keys, in all."""
    rows = rows_named(trace, lambda name: name.startswith("Collective"))
    rows = rows[np.argsort(trace.events.start_ps[rows], kind="stable")]
    groups = stat_of(trace, "group_key", rows)
    instances = stat_of(trace, "instance_key", rows)
    known = np.flatnonzero((groups != ABSENT) & (instances != ABSENT))
    found: dict[Meeting, int] = {}
    for index in known:
        meeting = int(groups[index]), int(instances[index])
        length = int(trace.events.duration_ps[rows[index]])
        found[meeting] = found.get(meeting, 0) + length
    return found
