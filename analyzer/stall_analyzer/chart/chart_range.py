"""A stretch of a chart in sums: where its time went, which ops ran, and below which others.

Sums are computed from the columns, row by row of each lane, and never event by event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from stall_analyzer.chart.chart_columns import Chart, Lane, name_of_rank
from stall_analyzer.chart.event_lanes import THREADS
from stall_analyzer.chart.lanes import LEDGER, TRAINING_THREAD
from stall_analyzer.decode.vocabulary import op_type
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Int64s

MOST_OPS = 100
NARROWEST_FLAME = 1 / 500  # of the whole: that is only a few pixels
EAGER = "EagerLocalExecute: "


def sums(chart: Chart, start_ps: int, end_ps: int) -> dict[str, Any]:
    """Where the time of [start_ps, end_ps) went: causes of the ledger, ops by self time, and
    flames."""
    ops, flames = _Ops(), _Flames()
    labels = [op_label(name) for name in chart.names]
    for lane in chart.lanes:
        if lane.id == TRAINING_THREAD or lane.group in (THREADS, "device"):
            rows = _nested(lane, start_ps, end_ps)
            ops.add(rows, labels)
            flames.add(rows, labels, family(lane))
    return {
        "start_ps": start_ps,
        "end_ps": end_ps,
        "causes": causes_within(chart, start_ps, end_ps),
        "ops": ops.largest(),
        "flames": flames.wide_ones(),
    }


def causes_within(chart: Chart, start_ps: int, end_ps: int) -> list[list[Any]]:
    """`[[cause, ps]…]` of the ledger, largest first."""
    ledger = next((lane for lane in chart.lanes if lane.id == LEDGER), None)
    if ledger is None:
        return []
    tiles = _clipped(ledger, 0, start_ps, end_ps)
    used, total = _summed(tiles.name, tiles.length)
    order = np.argsort(-total, kind="stable")
    return [[chart.names[used[i]], int(total[i])] for i in order if total[i] > 0]


def op_label(name: str) -> str:
    """What an event is counted under: an op by its type, whatever its node is called."""
    return op_type(name) or name.removeprefix(EAGER)


def family(lane: Lane) -> str:
    """`tf_Compute 2` -> `tf_Compute`: the threads of a pool do the same."""
    title, _, number = lane.title.rpartition(" ")
    is_numbered = lane.group == THREADS and title and number.isdigit()
    return title if is_numbered else lane.title


class _Row(NamedTuple):
    """The intervals of a row that are in a stretch."""

    start: Int64s
    end: Int64s
    name: Int64s
    length: Int64s  # of the part inside
    around: Int64s  # the index of the enclosing interval in the row above, or -1


def _nested(lane: Lane, start_ps: int, end_ps: int) -> list[_Row]:
    rows: list[_Row] = []
    for number in range(lane.depth):
        row = _clipped(lane, number, start_ps, end_ps)
        rows.append(row._replace(around=_around(row, rows[-1])) if rows else row)
    return rows


def _clipped(lane: Lane, row: int, start_ps: int, end_ps: int) -> _Row:
    first, last = int(lane.rows[row]), int(lane.rows[row + 1])
    begin = first + int(np.searchsorted(lane.end_ps[first:last], start_ps, side="right"))
    end = first + int(np.searchsorted(lane.start_ps[first:last], end_ps))
    mine = slice(begin, max(begin, end))
    starts, ends = lane.start_ps[mine], lane.end_ps[mine]
    length = np.minimum(ends, end_ps) - np.maximum(starts, start_ps)
    nowhere = np.full(len(starts), -1, dtype=np.int64)
    return _Row(starts, ends, name_of_rank(lane.rank[mine]), length, nowhere)


def _around(inner: _Row, outer: _Row) -> Int64s:
    if len(outer.start) == 0:
        return inner.around
    place = np.searchsorted(outer.start, inner.start, side="right") - 1
    is_inside = (place >= 0) & (outer.end[place] > inner.start)
    return np.where(is_inside, place, -1)


def _summed(keys: Int64s, length: Int64s) -> tuple[Int64s, Int64s]:
    """Each key once, with the sum of its lengths."""
    used, where = np.unique(keys, return_inverse=True)
    total = np.zeros(len(used), dtype=np.int64)
    np.add.at(total, where, length)
    return used, total


@dataclass
class _Ops:
    """Per label: how many, how long, and how long without what ran inside them."""

    found: dict[str, list[int]] = field(default_factory=dict)

    def add(self, rows: Sequence[_Row], labels: Sequence[str]) -> None:
        for number, row in enumerate(rows):
            own = row.length.copy()
            for inner in rows[number + 1 : number + 2]:
                inside = inner.around >= 0
                np.subtract.at(own, inner.around[inside], inner.length[inside])
            used, count = np.unique(row.name, return_counts=True)
            columns = used, count, _summed(row.name, row.length)[1], _summed(row.name, own)[1]
            for name, *numbers in zip(*(column.tolist() for column in columns), strict=True):
                known = self.found.get(labels[name], [0, 0, 0])
                self.found[labels[name]] = [a + b for a, b in zip(known, numbers, strict=True)]

    def largest(self) -> list[list[Any]]:
        """`[[label, count, ps, own_ps]…]`"""
        order = sorted(self.found.items(), key=lambda item: -item[1][2])
        return [[label, *numbers] for label, numbers in order[:MOST_OPS]]


@dataclass
class _Flames:
    """What ran below what: nodes by their parent and label, as wide as the time they took."""

    numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    ps: list[int] = field(default_factory=list)

    def add(self, rows: Sequence[_Row], labels: Sequence[str], root_label: str) -> None:
        root = self._node(-1, root_label, int(rows[0].length.sum())) if rows else -1
        nodes = np.empty(0, dtype=np.int64)
        for row in rows:
            parent = np.full(len(row.name), root, dtype=np.int64)
            inside = row.around >= 0
            parent[inside] = nodes[row.around[inside]]
            nodes = self._row(row, parent, labels)

    def _row(self, row: _Row, parent: Int64s, labels: Sequence[str]) -> Int64s:
        """The node of each interval. Only distinct pairs are looked at one by one."""
        most = len(labels)
        pairs, where = np.unique(parent * most + row.name, return_inverse=True)
        total = _summed(where, row.length)[1]
        found = [
            self._node(pair // most, labels[pair % most], ps)
            for pair, ps in zip(pairs.tolist(), total.tolist(), strict=True)
        ]
        return np.array(found, dtype=np.int64)[where]

    def _node(self, around: int, label: str, ps: int) -> int:
        number = self.numbers.setdefault((around, label), len(self.numbers))
        if number == len(self.ps):
            self.ps.append(0)
        self.ps[number] += ps
        return number

    def wide_ones(self) -> list[list[Any]]:
        """`[[parent or -1, label, ps]…]`, each after its parent."""
        least = NARROWEST_FLAME * sum(ps for (around, _), ps in self._all() if around < 0)
        places = {-1: -1}
        shown: list[list[Any]] = []
        for number, ((around, label), ps) in enumerate(self._all()):
            if around in places and ps >= max(least, 1):
                places[number] = len(shown)
                shown.append([places[around], label, ps])
        return shown

    def _all(self) -> Iterator[tuple[tuple[int, str], int]]:
        return zip(self.numbers, self.ps, strict=True)
