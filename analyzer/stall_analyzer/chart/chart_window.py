"""A window of a chart as plain data: what the page draws, and what it finds by name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from stall_analyzer.chart.chart_columns import Chart, Curve, Lane, name_of_rank
from stall_analyzer.chart.detail import Items, merged, thinned
from stall_analyzer.chart.event_lanes import THREADS
from stall_analyzer.chart.lanes import LEDGER
from stall_analyzer.model.units import Bools, Int64s

# A machine has hundreds of threads. The busiest are shown; the others when somebody asks for them.
FEW_THREADS = 16
EVERY_THREAD = "threads"


def timeline(
    chart: Chart, start_ps: int, end_ps: int, pixels: int, opened: Collection[str] = ()
) -> dict[str, Any]:
    """Lanes and curves of [start_ps, end_ps), in as much detail as `pixels` can show. Of threads
    only the outermost events, unless their lanes are among the `opened`."""
    pixel_ps = max(-(-(end_ps - start_ps) // pixels), 1)
    names = _UsedNames(chart.names)
    lanes = [
        _lane(lane, depth, (start_ps, end_ps, pixel_ps), names)
        for lane, depth in _shown(chart, opened)
    ]
    threads = sum(lane.group == THREADS for lane in chart.lanes)
    return {
        "host": chart.host,
        "duration_ps": chart.duration_ps,
        "start_ps": start_ps,
        "end_ps": end_ps,
        "pixels": pixels,
        "names": names.in_order,
        "lanes": lanes,
        "threads": threads,
        "series": [_series(curve, start_ps, end_ps, pixel_ps) for curve in chart.curves],
    }


def search(chart: Chart, text: str, limit: int) -> dict[str, Any]:
    """Intervals whose name has `text` in it, in any case: the first `limit`, and how many."""
    wanted = text.casefold()
    matches = np.array([wanted in name.casefold() for name in chart.names], dtype=np.bool_)
    total = 0
    hits: list[tuple[int, int, int, Lane, int]] = []
    for lane in chart.lanes if matches.any() else ():
        found = _named(lane, matches)
        total += len(found)
        earliest = found[np.argsort(lane.start_ps[found], kind="stable")][:limit]
        names = name_of_rank(lane.rank[earliest])
        rows = np.searchsorted(lane.rows, earliest, side="right") - 1
        hits += [
            (int(lane.start_ps[i]), int(lane.end_ps[i]), int(name), lane, int(row))
            for i, name, row in zip(earliest, names, rows, strict=True)
        ]
    hits.sort(key=lambda hit: (hit[0], -hit[1]))
    return {
        "hits": [
            {
                "name": chart.names[name],
                "lane": lane.id,
                "row": row,
                "start_ps": start,
                "end_ps": end,
            }
            for start, end, name, lane, row in hits[:limit]
        ],
        "total": total,
    }


def _named(lane: Lane, matches: Bools) -> Int64s:
    return np.flatnonzero(matches[name_of_rank(lane.rank)])


def _shown(chart: Chart, opened: Collection[str]) -> Iterator[tuple[Lane, int]]:
    """The lanes that are sent, each with how many of its rows."""
    room = len(chart.lanes) if EVERY_THREAD in opened else FEW_THREADS
    for lane in chart.lanes:
        if lane.group != THREADS or lane.id in opened:
            yield lane, lane.depth
        elif room > 0:
            yield lane, min(1, lane.depth)
        room -= lane.group == THREADS


class _UsedNames:
    """Only the names that occur in a window are sent with it."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._places: dict[int, int] = {}

    def places(self, names: list[int]) -> list[int]:
        for name in dict.fromkeys(names):
            self._places.setdefault(name, len(self._places))
        return list(map(self._places.__getitem__, names))

    @property
    def in_order(self) -> list[str]:
        return [self._names[name] for name in self._places]


def _lane(
    lane: Lane, depth: int, window: tuple[int, int, int], names: _UsedNames
) -> dict[str, Any]:
    # Tuples of numbers, of which there may be tens of thousands: Python's search for garbage soon
    # forgets them, while lists would bring it to look through all of TensorBoard's objects.
    items: list[tuple[Any, ...]] = []
    for row in range(depth):
        mine = slice(int(lane.rows[row]), int(lane.rows[row + 1]))
        columns = lane.start_ps[mine], lane.end_ps[mine], lane.rank[mine]
        shown = merged(*columns, *window)
        numbers = names.places(name_of_rank(shown.rank).tolist())
        rows = [row] * len(numbers)
        items += zip(
            shown.start.tolist(), shown.end.tolist(), numbers, rows, shown.size.tolist(),
            strict=True,
        )  # fmt: skip
        if lane.id == LEDGER:
            _add_parts(items, lane, shown, names)
    return {
        "id": lane.id,
        "title": lane.title,
        "group": lane.group,
        "depth": lane.depth,
        "rows": depth,
        "items": items,
    }


def _add_parts(items: list[tuple[Any, ...]], lane: Lane, shown: Items, names: _UsedNames) -> None:
    """To each merged item of the ledger what its causes come to, exactly: the band of a wide
    window must not belong to whoever is ahead in each pixel."""
    if len(shown.first) == 0:
        return
    tiles = slice(shown.first[0], shown.first[-1] + shown.size[-1])
    cause = name_of_rank(lane.rank[tiles])
    item = np.repeat(np.arange(len(items)), shown.size)
    causes = int(cause.max()) + 1
    sums = np.zeros(len(items) * causes, dtype=np.int64)
    np.add.at(sums, item * causes + cause, lane.end_ps[tiles] - lane.start_ps[tiles])
    several = np.flatnonzero(shown.size > 1)
    of_several = sums.reshape(len(items), causes)[several]
    row, cause = of_several.nonzero()
    spent = of_several[row, cause]
    largest_first = np.lexsort((-spent, row))
    numbers = names.places(cause[largest_first].tolist())
    parts = list(zip(numbers, spent[largest_first].tolist(), strict=True))
    ends = row.searchsorted(np.arange(len(several)), side="right").tolist()
    for i, begin, end in zip(several.tolist(), [0, *ends], ends, strict=False):
        items[i] = (*items[i], parts[begin:end])


def _series(curve: Curve, start_ps: int, end_ps: int, pixel_ps: int) -> dict[str, Any]:
    chosen = thinned(curve.at_ps, curve.value, start_ps, end_ps, pixel_ps)
    points = zip(curve.at_ps[chosen].tolist(), curve.value[chosen].tolist(), strict=True)
    return {
        "id": curve.id,
        "title": curve.title,
        "unit": curve.unit,
        "points": [[at, value if math.isfinite(value) else None] for at, value in points],
    }
