"""One capture of several hosts whose sessions have names a few seconds apart.

Each host names its session by its own clock when it exports. Sessions of different hosts that cover
the same time are one capture; two captures of the same host are two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from stall_analyzer.align.placed_trace import PlacedTrace
from stall_analyzer.discover.attempts import local_seconds
from stall_analyzer.model.notes import Note

# Hosts stop together, but take different times to write, and their clocks may be seconds apart.
NAMES_APART_S = 30
# Two captures that barely touch are separate.
COMMON_SHARE = 0.5


def split_session_notes(placed: Sequence[PlacedTrace]) -> list[Note]:
    notes = []
    for group in joined_sessions(placed):
        if len(group) > 1:
            names = ", ".join(group[:-1]) + f" and {group[-1]}"
            text = (
                f"Sessions {names} are one capture: different hosts recorded the same period and "
                "exported it under different names. They are read as one."
            )
            notes.append(Note("info", text))
    return notes


def joined_sessions(placed: Sequence[PlacedTrace]) -> list[list[str]]:
    """The ids of the sessions, grouped by capture."""
    members: dict[str, list[PlacedTrace]] = {}
    for trace in placed:
        members.setdefault(trace.session.id, []).append(trace)
    groups = [[session] for session in members]
    for one, other in combinations(members, 2):
        here = next(group for group in groups if one in group)
        there = next(group for group in groups if other in group)
        if here is there or not _named_together(one, other):
            continue
        mine = [trace for session in here for trace in members[session]]
        theirs = [trace for session in there for trace in members[session]]
        if _are_one_capture(mine, theirs):
            groups.remove(there)
            here += there
    return groups


def _named_together(one: str, other: str) -> bool:
    first, second = local_seconds(one), local_seconds(other)
    return first is not None and second is not None and abs(first - second) <= NAMES_APART_S


def _are_one_capture(mine: Sequence[PlacedTrace], theirs: Sequence[PlacedTrace]) -> bool:
    if {p.host for p in mine} & {p.host for p in theirs}:
        return False
    one, other = _span(mine), _span(theirs)
    if one is None or other is None:
        return False
    common = min(one[1], other[1]) - max(one[0], other[0])
    shorter = min(one[1] - one[0], other[1] - other[0])
    return common > 0 and common >= COMMON_SHARE * shorter


def _span(traces: Sequence[PlacedTrace]) -> tuple[int, int] | None:
    """From the first beginning to the last end, on the common clock."""
    begins = [p.origin_ps + p.extent_ps[0] for p in traces if p.origin_ps is not None]
    ends = [p.origin_ps + p.extent_ps[1] for p in traces if p.origin_ps is not None]
    return (min(begins), max(ends)) if begins else None
