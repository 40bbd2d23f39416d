"""The charts of a run in a file: a line of JSON, and then all numbers as plain columns that are
mapped, not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stall_analyzer.chart.chart_columns import Argument, Chart, Curve, Lane
from stall_analyzer.model.units import Int64s

WORD_BYTES = 8  # all columns are of int64 or float64

# The next column, by its length.
Take: TypeAlias = Callable[[int], Int64s]


def pieces(charts: Sequence[Chart], version: str) -> Iterator[bytes]:
    """What to write, piece by piece."""
    columns = [column for chart in charts for column in _columns(chart)]
    words = sum(map(len, columns)) + 1
    about = {"version": version, "words": words, "charts": [_about(chart) for chart in charts]}
    line = json.dumps(about).encode()
    yield line + b" " * (-(len(line) + 1) % WORD_BYTES) + b"\n"
    yield from (column.tobytes() for column in columns)
    yield bytes(WORD_BYTES)  # nothing at all could not be mapped


def load(path: Path, version: str) -> list[Chart]:
    """Raises ValueError, KeyError, TypeError or OSError where the file is damaged, or of another
    version."""
    with path.open("rb") as file:
        line = file.readline()
    about = json.loads(line)
    if about["version"] != version:
        raise ValueError("the charts are of another version")
    # A plain array over the mapped bytes: each slice of a memmap object costs microseconds.
    words = np.asarray(np.memmap(path, np.int64, mode="r", offset=len(line)))
    if len(words) != about["words"]:
        raise ValueError("the charts are cut off")
    begin = 0

    def take(count: int) -> Int64s:
        nonlocal begin
        begin += count
        return words[begin - count : begin]

    return [_chart(chart, take) for chart in about["charts"]]


def _columns(chart: Chart) -> Iterator[Any]:
    for lane in chart.lanes:
        for column in (lane.start_ps, lane.end_ps, lane.rank):
            yield column.astype(np.int64, copy=False)
        for argument in lane.arguments:
            yield argument.at.astype(np.int64, copy=False)
            yield argument.value.astype(np.int64, copy=False)
    for curve in chart.curves:
        yield curve.at_ps.astype(np.int64, copy=False)
        yield curve.value.astype(np.float64, copy=False)


def _about(chart: Chart) -> dict[str, Any]:
    return {
        "host": chart.host,
        "duration_ps": chart.duration_ps,
        "names": chart.names,
        "lanes": [
            {
                "id": lane.id,
                "title": lane.title,
                "group": lane.group,
                "rows": lane.rows.tolist(),
                "arguments": [[one.name, one.kind, len(one.at)] for one in lane.arguments],
            }
            for lane in chart.lanes
        ],
        "curves": [
            {"id": curve.id, "title": curve.title, "unit": curve.unit, "points": len(curve.at_ps)}
            for curve in chart.curves
        ],
    }


def _chart(about: dict[str, Any], take: Take) -> Chart:
    lanes = tuple(_lane(lane, take) for lane in about["lanes"])
    curves = tuple(_curve(curve, take) for curve in about["curves"])
    return Chart(about["host"], about["duration_ps"], tuple(about["names"]), lanes, curves)


def _lane(about: dict[str, Any], take: Take) -> Lane:
    rows = np.array(about["rows"], dtype=np.int64)
    length = int(rows[-1])
    start, end, rank = take(length), take(length), take(length)
    arguments = tuple(
        Argument(name, kind, take(count), take(count)) for name, kind, count in about["arguments"]
    )
    return Lane(about["id"], about["title"], about["group"], rows, start, end, rank, arguments)


def _curve(about: dict[str, Any], take: Take) -> Curve:
    at, value = take(about["points"]), take(about["points"]).view(np.float64)
    return Curve(about["id"], about["title"], about["unit"], at, value)
