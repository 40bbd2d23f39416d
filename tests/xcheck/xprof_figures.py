"""XProf's figures of a trace: what its tools print, and what TensorFlow stored beside the trace.

XProf keeps a cache beside a trace, so it always gets a copy.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stall_analyzer.attribute.device_work import PROGRAM_LINE
from stall_analyzer.attribute.xla import is_compiler_event
from stall_analyzer.decode.device_events import COPIES, STREAM, device_kind, is_device
from stall_analyzer.signals.host.device_activity import SIZE
from tests.xcheck.figures import Figure, Figures

TOOLS = ("kernel_stats", "hlo_stats", "memory_profile", "overview_page", "trace_viewer")


def xprof_figures(path: Path) -> dict[str, Figures]:
    """By the tool that gives them."""
    printed = _printed(path)
    found = {
        "kernel_stats": _kernels(printed["kernel_stats"]),
        "hlo_stats": _hlo(printed["hlo_stats"]),
        "memory_profile": _memory(printed["memory_profile"]),
        "overview_page": _steps(printed["overview_page"]),
        "trace_viewer": _events(printed["trace_viewer"]),
    }
    stored = path.with_name(path.name.removesuffix(".xplane.pb") + ".memory_profile.json.gz")
    if stored.exists():
        found["stored memory_profile"] = _memory(json.loads(gzip.decompress(stored.read_bytes())))
    return found


def _printed(path: Path) -> dict[str, Any]:
    from xprof.convert import raw_to_tool_data  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / path.name
        shutil.copy(path, copy)
        ask = raw_to_tool_data.xspace_to_tool_data
        options: dict[str, dict[str, str]] = {"trace_viewer_options": {}}
        texts = {tool: ask([str(copy)], tool, options)[0] for tool in TOOLS}
    return {tool: json.loads(text) if text else {} for tool, text in texts.items()}


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    names = [column["id"] for column in table.get("cols", ())]
    return [
        dict(zip(names, [cell["v"] if cell else None for cell in row["c"]], strict=False))
        for row in table.get("rows", ())
    ]


def _kernels(table: dict[str, Any]) -> Figures:
    found: Figures = defaultdict(float)
    for row in _rows(table):
        found[Figure("op time, µs", row["kernel_name"])] += float(row["total_duration_us"])
        found[Figure("op count", row["kernel_name"])] += float(row["occurrences"])
    return found


def _hlo(table: dict[str, Any]) -> Figures:
    """Of a TPU; on a GPU several kernels make one op, and the table above has the kernels."""
    found: Figures = defaultdict(float)
    for row in _rows(table):
        if row.get("core_type") == "TensorCore":
            found[Figure("op time, µs", row["hlo_op_name"])] += float(row["total_self_time"])
            found[Figure("op count", row["hlo_op_name"])] += float(row["occurrences"])
    return found


def _memory(profile: dict[str, Any]) -> Figures:
    found: Figures = {}
    for name, one in profile.get("memoryProfilePerAllocator", {}).items():
        peak = float(one["profileSummary"]["peakStats"]["peakBytesInUse"])
        found[Figure("memory peak, bytes", name)] = peak
    return found


def _steps(tables: list[dict[str, Any]]) -> Figures:
    for table in tables:
        rows = [row for row in _rows(table) if "stepTimeMs" in row]
        if rows:
            longest = max(float(row["stepTimeMs"]) for row in rows)
            return {Figure("longest step, µs", "all devices"): 1000 * longest}
    return {}


def _events(trace: dict[str, Any]) -> Figures:
    """From the events that the trace viewer shows."""
    events = trace.get("traceEvents", ())
    named = {"process_name", "thread_name"}
    names = {
        (event["pid"], event.get("tid")): event["args"]["name"]
        for event in events
        if event.get("name") in named
    }
    found: Figures = defaultdict(float)
    spans: dict[Figure, list[tuple[float, float]]] = defaultdict(list)
    steps: dict[str, tuple[float, float]] = {}
    for event in events:
        if event.get("ph") != "X":
            continue
        plane, line = names.get((event["pid"], None), ""), names.get((event["pid"], event["tid"]))
        span, device = (event["ts"], event["ts"] + event["dur"]), plane.removeprefix("/device:")
        if not is_device(plane):
            if is_compiler_event(event["name"]):
                spans[Figure("compiling, µs", "host")].append(span)
        elif line == "Steps":
            steps[f"{device}, {event['name']}"] = span
        elif str(line).startswith(PROGRAM_LINE if device.startswith("TPU") else STREAM):
            spans[Figure("device busy, µs", device)].append(span)
            _add_copy(found, device, event)
    first = min((start for start, _ in steps.values()), default=0.0)
    for name, (start, end) in steps.items():
        found[Figure("step, µs", name)] = end - start
        found[Figure("step begins, µs after the first", name)] = start - first
    return found | {figure: _union(mine) for figure, mine in spans.items()}


def _add_copy(found: Figures, device: str, event: dict[str, Any]) -> None:
    kind = device_kind(event["name"])
    if kind not in COPIES:
        return
    direction = f"{device} {kind.replace('_', ' ')}"
    found[Figure("copies", direction)] += 1
    found[Figure("copies, µs", direction)] += event["dur"]
    size = SIZE.search(str(event.get("args", {}).get("memcpy_details", "")))
    found[Figure("copied bytes", direction)] += float(size[1]) if size else 0.0


def _union(spans: Iterable[tuple[float, float]]) -> float:
    covered, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(end - max(start, until), 0.0)
        until = max(until, end)
    return covered
