"""Timelines as the page reads them: tb_stall_plugin/http_api.md says how they are sent."""

from __future__ import annotations

import math
import struct
from base64 import b64decode
from itertools import accumulate
from typing import Any


def unpacked(answer: dict[str, Any]) -> dict[str, Any]:
    """With `items` in each lane, `[start, end, name, row, count, parts]`, and `points` in each
    series."""
    return answer | {
        "lanes": [lane | {"items": _items(lane)} for lane in answer["lanes"]],
        "series": [series | {"points": _points(series)} for series in answer["series"]],
    }


def _items(lane: dict[str, Any]) -> list[list[Any]]:
    count = sum(count for count, _ in lane["rows"])
    columns = (_numbers(lane[column], count) for column in ("gaps", "lengths", "names", "counts"))
    sent = zip(*columns, _parts(lane, count), strict=True)
    items = []
    for row, (of_row, first_ps) in enumerate(lane["rows"]):
        at = first_ps
        for _ in range(of_row):
            gap, length, name, merged, parts = next(sent)
            items.append([at + gap, at + gap + length, name, row, merged, parts])
            at += gap + length
    return items


def _parts(lane: dict[str, Any], count: int) -> list[list[tuple[int, int]]]:
    division = lane.get("division")
    if division is None:
        return [[]] * count
    sizes = _numbers(division["sizes"], count)
    columns = (_numbers(division[column], sum(sizes)) for column in ("names", "lengths"))
    parts = list(zip(*columns, strict=True))
    return [parts[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _points(series: dict[str, Any]) -> list[tuple[int, float | None]]:
    values = [value for (value,) in struct.iter_unpack("<d", b64decode(series["values"]))]
    at = accumulate(_numbers(series["gaps"], len(values)), initial=series["start_ps"])
    next(at)
    return [
        (ps, None if math.isnan(value) else value) for ps, value in zip(at, values, strict=True)
    ]


def _numbers(column: str, count: int) -> list[int]:
    data = b64decode(column)
    planes = [data[at : at + count] for at in range(0, len(data), max(count, 1))]
    return [int.from_bytes(number, "little") for number in zip(*planes, strict=True)]
