"""A window of a chart as plain data: what the page draws, and what its search finds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from stall_analyzer.chart.chart_columns import Chart, Curve, Lane, name_of_rank
from stall_analyzer.chart.detail import Items, merged, thinned
from stall_analyzer.chart.event_lanes import THREADS
from stall_analyzer.chart.lanes import LEDGER
from stall_analyzer.chart.packed import packed, packed_doubles
from stall_analyzer.model.units import Bools, Int64s

# A machine has hundreds of threads. The busiest are shown; the others only on request.
FEW_THREADS = 16
EVERY_THREAD = "threads"


def timeline(
    chart: Chart, start_ps: int, end_ps: int, pixels: int, opened: Collection[str] = ()
) -> dict[str, Any]:
    """Lanes and curves of [start_ps, end_ps), in as much detail as `pixels` can show. For threads,
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
    """Intervals whose name contains `text`, ignoring case: the first `limit`, and how many."""
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
    """The lanes that are sent, each with the number of rows to send."""
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
        self._places = np.full(len(names), -1)
        self.in_order: list[str] = []

    def places(self, numbers: Int64s) -> Int64s:
        new, seen_at = np.unique(numbers[self._places[numbers] < 0], return_index=True)
        new = new[np.argsort(seen_at)]
        self._places[new] = np.arange(len(new)) + len(self.in_order)
        self.in_order += [self._names[number] for number in new]
        return self._places[numbers]


def _lane(
    lane: Lane, depth: int, window: tuple[int, int, int], names: _UsedNames
) -> dict[str, Any]:
    of_rows = [_row(lane, row, window) for row in range(depth)]
    start, end, rank, size, _ = (np.concatenate(column) for column in zip(*of_rows, strict=True))
    gap = start - np.concatenate([start[:1], end[:-1]])
    counts = [len(items.start) for items in of_rows]
    gap[(np.cumsum(counts) - counts)[np.array(counts) > 0]] = 0  # since the row before
    sent = {
        "id": lane.id,
        "title": lane.title,
        "group": lane.group,
        "depth": lane.depth,
        "rows": [[len(items.start), int(items.start[:1].sum())] for items in of_rows],
        "gaps": packed(gap),
        "lengths": packed(end - start),
        "names": packed(names.places(name_of_rank(rank))),
        "counts": packed(size),
    }
    if lane.id == LEDGER:
        sent["division"] = _division(lane, of_rows[0], names)
    return sent


def _row(lane: Lane, row: int, window: tuple[int, int, int]) -> Items:
    mine = slice(int(lane.rows[row]), int(lane.rows[row + 1]))
    return merged(lane.start_ps[mine], lane.end_ps[mine], lane.rank[mine], *window)


def _division(lane: Lane, shown: Items, names: _UsedNames) -> dict[str, str]:
    """The exact sums of the causes in each merged item of the ledger: in a wide window, the band
    must not belong only to the largest cause of each pixel."""
    items = len(shown.first)
    tiles = slice(shown.first[0], shown.first[-1] + shown.size[-1]) if items else slice(0)
    cause = name_of_rank(lane.rank[tiles])
    causes = int(cause.max(initial=0)) + 1
    sums = np.zeros(items * causes, dtype=np.int64)
    item = np.repeat(np.arange(items), shown.size)
    np.add.at(sums, item * causes + cause, lane.end_ps[tiles] - lane.start_ps[tiles])
    of_several = np.where(shown.size > 1, sums.reshape(items, causes).T, 0).T
    row, cause = of_several.nonzero()
    spent = of_several[row, cause]
    largest_first = np.lexsort((-spent, row))
    return {
        "sizes": packed(np.bincount(row, minlength=items)),
        "names": packed(names.places(cause[largest_first])),
        "lengths": packed(spent[largest_first]),
    }


def _series(curve: Curve, start_ps: int, end_ps: int, pixel_ps: int) -> dict[str, Any]:
    chosen = thinned(curve.at_ps, curve.value, start_ps, end_ps, pixel_ps)
    at, value = curve.at_ps[chosen], curve.value[chosen]
    return {
        "id": curve.id,
        "title": curve.title,
        "unit": curve.unit,
        "start_ps": int(at[0]) if len(at) else 0,
        "gaps": packed(np.diff(at, prepend=at[:1])),
        "values": packed_doubles(np.where(np.isfinite(value), value, np.nan)),
    }
