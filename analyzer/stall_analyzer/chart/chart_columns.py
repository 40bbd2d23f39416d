"""Lanes and curves as numpy columns, in window time.

The columns may be mapped from a file (chart_files.py): a reader must not touch more of them than a
window needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from itertools import pairwise

import numpy as np

from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Float64s, Int32s, Int64s

NAME_LENGTH = 300  # longer names are cut: they would be sent with every window
NAME_BITS = 20
MOST_NAMES = 1 << NAME_BITS
OTHER_NAME = "(other names)"


@dataclass(frozen=True)
class Argument:
    """What the profiler noted for some events of a lane: `at` are their intervals, in order."""

    name: str
    kind: str  # "int" | "text" | "double", as in StatColumn; a text is the number of a name
    at: Int64s
    value: Int64s


@dataclass(frozen=True)
class Lane:
    """Rows of intervals. The intervals of a row are in order and do not overlap.

    `rank` holds an interval's length and name in one number, so that the name of the longest among
    many is one maximum over a column, without a copy.
    """

    id: str
    title: str
    group: str  # "attribution" | "training" | "input" | "compile" | "device" | "threads"
    rows: Int64s  # row r holds the intervals [rows[r], rows[r + 1])
    start_ps: Int64s
    end_ps: Int64s
    rank: Int64s
    arguments: tuple[Argument, ...] = ()

    @property
    def depth(self) -> int:
        return len(self.rows) - 1

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True)
class Curve:
    """A value over time, in order; values that are not finite are kept."""

    id: str
    title: str
    unit: str
    at_ps: Int64s
    value: Float64s


@dataclass(frozen=True)
class Chart:
    """Everything that one host shows about the first epoch."""

    host: str
    duration_ps: int
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    curves: tuple[Curve, ...]


@dataclass
class Names:
    """Gives each name a number, once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        short = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
        if len(self.numbers) >= MOST_NAMES - 1 and short not in self.numbers:
            short = OTHER_NAME
        return self.numbers.setdefault(short, len(self.numbers))

    def table(self, names: Iterable[str]) -> Int64s:
        return np.array([self.number(name) for name in names], dtype=np.int64)


def rank_of(start: Int64s, end: Int64s, name: Int64s) -> Int64s:
    # Lengths in units of 1024 ps leave room for two hours next to the name.
    longest = (1 << (63 - NAME_BITS)) - 1
    return np.asarray(np.minimum((end - start) >> 10, longest) << NAME_BITS | name, dtype=np.int64)


def name_of_rank(rank: Int64s) -> Int64s:
    return rank & (MOST_NAMES - 1)


def lane_of(
    label: tuple[str, str, str],
    duration_ps: int,
    start: Int64s,
    end: Int64s,
    name: Int64s,
    row: Int64s | Int32s | None = None,
    arguments: Iterable[Argument] = (),
) -> Lane:
    """A lane from intervals in any order; what is outside of the window is cut off.
    `label` is its id, title and group."""
    count = len(start)
    row = np.zeros(len(start), dtype=np.int64) if row is None else row.astype(np.int64)
    start, end = np.clip(start, 0, duration_ps), np.clip(end, 0, duration_ps)
    order = np.lexsort((start, row))
    order = order[(end > start)[order] & (row >= 0)[order]]
    start, end, name, row = start[order], end[order], name[order], row[order]
    for first, last in pairwise(_bounds(row)):
        # Two sessions may have recorded the same time: it is not shown twice.
        until = np.maximum.accumulate(end[first:last])
        start[first + 1 : last] = np.maximum(start[first + 1 : last], until[:-1])
    left = end > start
    start, end, name = start[left], end[left], name[left]
    rows = np.array(_bounds(row[left]), dtype=np.int64)
    place = np.full(count, -1, dtype=np.int64)
    place[order[left]] = np.arange(len(start))
    moved = tuple(_moved(argument, place) for argument in arguments)
    return Lane(*label, rows, start, end, rank_of(start, end, name), moved)


def _moved(argument: Argument, place: Int64s) -> Argument:
    """Arguments at the intervals' new places; those of dropped intervals are dropped, too."""
    at = place[argument.at]
    order = np.argsort(at, kind="stable")
    order = order[at[order] >= 0]
    return replace(argument, at=at[order], value=argument.value[order])


def _bounds(row: Int64s) -> list[int]:
    """Where each row begins, and the end."""
    depth = int(row[-1]) + 1 if len(row) else 0
    return [int(at) for at in np.searchsorted(row, np.arange(depth + 1))]
