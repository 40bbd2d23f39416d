"""One interval of a chart: its arguments, what is around and inside it, what it waited for."""

from __future__ import annotations

from typing import Any

import numpy as np

from stall_analyzer.chart.chart_columns import Argument, Chart, Lane, name_of_rank
from stall_analyzer.chart.chart_range import causes_within
from stall_analyzer.model.units import Int64s

MOST_INSIDE = 10
EXACT_IN_JAVASCRIPT = 1 << 53


def event(
    chart: Chart, lane_id: str, row: int, start_ps: int, end_ps: int
) -> dict[str, Any] | None:
    """The longest interval of a row that begins in [start_ps, end_ps); null if none does."""
    lane = next((lane for lane in chart.lanes if lane.id == lane_id), None)
    if lane is None or not 0 <= row < lane.depth:
        return None
    first, last = _between(lane, row, start_ps, end_ps)
    if first >= last:
        return None
    at = first + int(np.argmax(lane.rank[first:last]))
    start, end = int(lane.start_ps[at]), int(lane.end_ps[at])
    return {
        "name": _name(chart, lane, at),
        "lane": lane.id,
        "row": row,
        "start_ps": start,
        "end_ps": end,
        "count": last - first,
        "arguments": [
            [one.name, value] for one in lane.arguments for value in _value(chart, one, at)
        ],
        "around": _around(chart, lane, row, start),
        "inside": _inside(chart, lane, row, start, end),
        "causes": causes_within(chart, start, end),
    }


def _between(lane: Lane, row: int, start_ps: int, end_ps: int) -> tuple[int, int]:
    first, last = int(lane.rows[row]), int(lane.rows[row + 1])
    starts = lane.start_ps[first:last]
    begin, end = np.searchsorted(starts, [start_ps, end_ps])
    return first + int(begin), first + int(end)


def _name(chart: Chart, lane: Lane, at: int) -> str:
    return chart.names[int(name_of_rank(lane.rank[at : at + 1])[0])]


def _value(chart: Chart, argument: Argument, at: int) -> list[int | float | str]:
    place = int(np.searchsorted(argument.at, at))
    if place == len(argument.at) or argument.at[place] != at:
        return []
    value = argument.value[place : place + 1]
    if argument.kind == "text":
        return [chart.names[int(value[0])]]
    if argument.kind == "double":
        number = float(value.view(np.float64)[0])
        return [number] if np.isfinite(number) else []
    whole = int(value[0])
    return [whole if abs(whole) <= EXACT_IN_JAVASCRIPT else str(whole)]


def _around(chart: Chart, lane: Lane, row: int, at_ps: int) -> list[str]:
    """Outermost first."""
    found = []
    for outer in range(row):
        first, last = int(lane.rows[outer]), int(lane.rows[outer + 1])
        place = first + int(np.searchsorted(lane.start_ps[first:last], at_ps, side="right")) - 1
        if place >= first and lane.end_ps[place] > at_ps:
            found.append(_name(chart, lane, place))
    return found


def _inside(chart: Chart, lane: Lane, row: int, start_ps: int, end_ps: int) -> list[list[Any]]:
    """`[[name, count, ps]…]` of what is directly inside it, longest first."""
    if row + 1 >= lane.depth:
        return []
    first, last = _between(lane, row + 1, start_ps, end_ps)
    name: Int64s = name_of_rank(lane.rank[first:last])
    used, where, count = np.unique(name, return_inverse=True, return_counts=True)
    total = np.zeros(len(used), dtype=np.int64)
    np.add.at(total, where, lane.end_ps[first:last] - lane.start_ps[first:last])
    order = np.argsort(-total, kind="stable")[:MOST_INSIDE]
    return [[chart.names[used[i]], int(count[i]), int(total[i])] for i in order]
