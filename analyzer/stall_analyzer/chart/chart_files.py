"""The charts of a run in a file: a line of JSON, and then all numbers as plain columns.

They are read, not mapped: a file that shrinks under a mapping kills the process that looks at it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stall_analyzer.chart.chart_columns import Argument, Chart, Curve, Lane
from stall_analyzer.model.units import Int64s

# Reads the next column of a given length.
Take: TypeAlias = Callable[[int], Int64s]


def pieces(charts: Sequence[Chart], version: str) -> Iterator[bytes]:
    """What to write, piece by piece."""
    columns = [column for chart in charts for column in _columns(chart)]
    about = {
        "version": version,
        "words": sum(map(len, columns)),
        "checksum": reduce(_extended, columns, 0),
        "charts": [_about(chart) for chart in charts],
    }
    yield json.dumps(about).encode() + b"\n"
    yield from (column.tobytes() for column in columns)


def is_of(path: Path, version: str) -> bool:
    """Whether the file begins like one of this version. Only `load` tells whether it is whole."""
    begin = json.dumps({"version": version}).encode().rstrip(b"}")
    with path.open("rb") as file:
        return file.read(len(begin)) == begin


def load(path: Path, version: str) -> list[Chart]:
    """Raises ValueError, KeyError, TypeError or OSError if the file is damaged, or from another
    version."""
    with path.open("rb") as file:
        line = file.readline()
        about = json.loads(line)
        if about["version"] != version:
            raise ValueError("the charts were made by another version")
        words = np.frombuffer(file.read(), np.int64)
    whole = line.endswith(b"\n") and len(words) == about["words"]
    if not whole or _extended(0, words) != about["checksum"]:
        raise ValueError("the charts are damaged")
    begin = 0

    def take(count: int) -> Int64s:
        nonlocal begin
        begin += count
        return words[begin - count : begin]

    return [_chart(chart, take) for chart in about["charts"]]


def _extended(checksum: int, column: Any) -> int:
    data: Any = np.ascontiguousarray(column)
    return zlib.crc32(data, checksum)


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
