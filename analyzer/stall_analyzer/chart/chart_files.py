"""Charts in files: numbers as plain columns that are mapped, not read; all else as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from stall_analyzer.chart.chart_columns import Chart, Curve, Lane

COLUMNS = ("start_ps", "end_ps", "rank")


def save(chart: Chart, folder: Path) -> None:
    """Into a new folder."""
    folder.mkdir(parents=True)
    for column in COLUMNS:
        parts = [getattr(lane, column) for lane in chart.lanes]
        np.save(folder / f"{column}.npy", np.concatenate([np.empty(0, dtype=np.int64), *parts]))
    at = [curve.at_ps for curve in chart.curves]
    value = [curve.value for curve in chart.curves]
    np.save(folder / "at_ps.npy", np.concatenate([np.empty(0, dtype=np.int64), *at]))
    np.save(folder / "value.npy", np.concatenate([np.empty(0), *value]))
    about = {
        "host": chart.host,
        "duration_ps": chart.duration_ps,
        "names": chart.names,
        "lanes": [
            {"id": lane.id, "title": lane.title, "group": lane.group, "rows": lane.rows.tolist()}
            for lane in chart.lanes
        ],
        "curves": [
            {"id": curve.id, "title": curve.title, "unit": curve.unit, "points": len(curve.at_ps)}
            for curve in chart.curves
        ],
    }
    (folder / "chart.json").write_text(json.dumps(about), encoding="utf-8")


def load(folder: Path) -> Chart:
    about = json.loads((folder / "chart.json").read_text(encoding="utf-8"))
    return Chart(
        about["host"],
        about["duration_ps"],
        tuple(about["names"]),
        tuple(_lanes(about["lanes"], folder)),
        tuple(_curves(about["curves"], folder)),
    )


def _lanes(about: list[dict[str, Any]], folder: Path) -> list[Lane]:
    columns = [_mapped(folder, column) for column in COLUMNS]
    lanes, begin = [], 0
    for lane in about:
        rows = np.array(lane["rows"], dtype=np.int64)
        mine = slice(begin, begin + int(rows[-1]))
        start, end, rank = (column[mine] for column in columns)
        lanes.append(Lane(lane["id"], lane["title"], lane["group"], rows, start, end, rank))
        begin = mine.stop
    return lanes


def _curves(about: list[dict[str, Any]], folder: Path) -> list[Curve]:
    at, value = _mapped(folder, "at_ps"), _mapped(folder, "value")
    curves, begin = [], 0
    for curve in about:
        mine = slice(begin, begin + curve["points"])
        curves.append(Curve(curve["id"], curve["title"], curve["unit"], at[mine], value[mine]))
        begin = mine.stop
    return curves


def _mapped(folder: Path, column: str) -> Any:
    # A plain array over the mapped bytes: each slice of a memmap object costs microseconds.
    return np.asarray(np.load(folder / f"{column}.npy", mmap_mode="r"))
