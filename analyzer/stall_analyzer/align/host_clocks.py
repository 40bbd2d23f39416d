"""One clock for all hosts: what they share shows how far apart their clocks are.

A collective ends on all hosts at once, so the median difference of its ends is the difference of
the clocks. If hosts train together but no collective can be matched, the numbers of their steps
serve the same purpose. Otherwise, each host's own clock has to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.align.collectives import MeetingTable, meeting_table
from stall_analyzer.align.placed_trace import PlacedTrace
from stall_analyzer.model.columns import median
from stall_analyzer.model.format import seconds
from stall_analyzer.model.kinds import ClockSource
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import HostClock
from stall_analyzer.model.units import NEVER, PS_PER_MS, PS_PER_NS, Int64s

# One or two common events may match by mistake; more do not agree by chance.
SHARED_LEAST = 3
# Steps that end together do so within a few milliseconds. If they do not, the hosts train
# separately.
STEPS_AGREE_PS = 50 * PS_PER_MS
# Clocks that a time service sets agree within this; a larger difference is worth mentioning.
NOTABLE_PS = 100 * PS_PER_MS
# What hosts may share, most reliable first.
COMPARED: tuple[ClockSource, ...] = ("collectives", "steps")
NO_TIMES: Int64s = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Difference:
    """How much later the same events are in one trace's time than in another's."""

    ps: int
    error_ps: int
    shared: int


def place_hosts(
    traces: Sequence[PlacedTrace], clock_ns: int | None, logging_host: str
) -> Sequence[PlacedTrace]:
    """Each trace at its place on the common clock, which begins at `clock_ns`. If there are several
    clocks, that of the logging host counts or, if it left no trace, the first one. Without
    `clock_ns` nothing at all has a clock, and time may begin anywhere.
    """
    own = [_by_own_clock(trace, clock_ns) for trace in traces]
    hosts = list(dict.fromkeys(trace.host for trace in traces))
    if len(hosts) < 2:
        return own
    # A worker's trace is named by its host and its task.
    leader = next((h for h in hosts if f"{h}-".startswith(f"{logging_host}-")), hosts[0])
    return _Placing(own, floating=clock_ns is None).place(leader)


def _by_own_clock(trace: PlacedTrace, clock_ns: int | None) -> PlacedTrace:
    if trace.base_unix_ns is None or clock_ns is None:
        return trace
    clock = HostClock("own clock", ahead_ps=0) if trace.exact else HostClock("session name")
    return replace(trace, origin_ps=(trace.base_unix_ns - clock_ns) * PS_PER_NS, clock=clock)


class _Placing:
    def __init__(self, traces: Sequence[PlacedTrace], floating: bool) -> None:
        self._traces = traces  # each by its own clock
        self._floating = floating
        self._table = meeting_table([trace.collectives for trace in traces])
        self._placed: dict[int, PlacedTrace] = {}
        self._ahead: dict[str, int] = {}  # for hosts whose clocks have been compared

    def place(self, leader: str) -> list[PlacedTrace]:
        """Goes from each placed trace to all that share something with it, and so on."""
        order = sorted(range(len(self._traces)), key=lambda i: self._traces[i].host != leader)
        while len(self._placed) < len(self._traces):
            left = [i for i in order if i not in self._placed]
            followed = [i for i in left if self._follow(i)]
            if not followed:
                self._begin_with(left[0])
        return [self._placed[i] for i in range(len(self._traces))]

    def _begin_with(self, index: int) -> None:
        """Nothing ties it to those placed so far, so use its own clock, corrected as far as
        known."""
        trace = self._traces[index]
        ahead = self._ahead.setdefault(trace.host, 0)
        if self._floating:
            trace = replace(trace, origin_ps=0)
        elif trace.origin_ps is not None and trace.exact:
            clock = HostClock("own clock", ahead_ps=ahead)
            trace = replace(trace, origin_ps=trace.origin_ps - ahead, clock=clock)
        self._placed[index] = trace

    def _follow(self, index: int) -> bool:
        """Places a trace by what it shares with one that is already placed, if there is one."""
        trace = self._traces[index]
        for source in COMPARED:
            found = [
                (difference.shared, placed.on_clock(difference.ps), difference)
                for i, placed in self._placed.items()
                if (difference := self._difference(source, index, i)) is not None
            ]
            if found:
                _, origin_ps, difference = max(found, key=lambda entry: entry[0])
                own = trace.origin_ps if trace.exact else None
                ahead = None if own is None else own - origin_ps
                clock = HostClock(source, difference.shared, ahead, difference.error_ps)
                self._placed[index] = replace(trace, origin_ps=origin_ps, clock=clock)
                if ahead is not None:
                    self._ahead.setdefault(trace.host, ahead)
                return True
        if trace.host in self._ahead and trace.exact and trace.origin_ps is not None:
            self._begin_with(index)
            return True
        return False

    def _difference(self, source: ClockSource, index: int, placed: int) -> Difference | None:
        if self._placed[placed].origin_ps is None:
            return None
        if source == "collectives":
            return _by_collectives(self._table, index, placed)
        return _by_steps(self._traces[index], self._traces[placed])


def _by_collectives(table: MeetingTable, index: int, placed: int) -> Difference | None:
    mine, theirs = table.ended_ps[:, index], table.ended_ps[:, placed]
    both = (mine != NEVER) & (theirs != NEVER)
    return median_difference(theirs[both] - mine[both])


def _by_steps(trace: PlacedTrace, placed: PlacedTrace) -> Difference | None:
    """By step numbers, if both train with others or one has no clock at all."""
    together = all(len(t.collectives.arrived_ps) for t in (trace, placed))
    if not together and trace.exact and trace.origin_ps is not None:
        return None
    my_number, my_end = _numbered_once(trace)
    their_number, their_end = _numbered_once(placed)
    _, mine, theirs = np.intersect1d(my_number, their_number, return_indices=True)
    found = median_difference(their_end[theirs] - my_end[mine])
    return found if found is not None and found.error_ps <= STEPS_AGREE_PS else None


def _numbered_once(trace: PlacedTrace) -> tuple[Int64s, Int64s]:
    """Training steps whose number occurs once, and their ends: Keras starts over in each epoch."""
    steps = trace.steps
    if steps is None or steps.number is None:
        return NO_TIMES, NO_TIMES
    number, first, count = np.unique(
        steps.number[steps.training], return_index=True, return_counts=True
    )
    once = count == 1
    return number[once], steps.end_ps[steps.training][first[once]]


def median_difference(differences: Int64s) -> Difference | None:
    if len(differences) < SHARED_LEAST:
        return None
    middle = int(median(differences))
    return Difference(middle, int(median(np.abs(differences - middle))), len(differences))


def clock_notes(all_clocks: Sequence[HostClock]) -> list[Note]:
    """What the reader should know: how the clocks were aligned, and how well they agree now."""
    notes = []
    for source in COMPARED:
        clocks = [clock for clock in all_clocks if clock.source == source]
        if not clocks:
            continue
        error = max(clock.error_ps or 0 for clock in clocks)
        fewest = min(clock.shared for clock in clocks)
        apart = max((abs(clock.ahead_ps or 0) for clock in clocks), default=0)
        text = (
            f"The hosts' clocks were aligned using at least {fewest} common {source}, which agree "
            f"to within {seconds(error)} (median)."
        )
        if apart >= NOTABLE_PS:
            text += f" Before the alignment, they were up to {seconds(apart)} apart."
        notes.append(Note("info", text))
    return notes
