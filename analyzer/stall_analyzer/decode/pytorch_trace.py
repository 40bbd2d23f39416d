"""Traces of PyTorch's profiler (Kineto): recognized, and summarized in one sentence.

They are Chrome traces like those of old TensorFlow, but their events mean something else. Only sums
are kept: such a file may contain tens of millions of events.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from stall_analyzer.model.columns import median
from stall_analyzer.model.foreign import ForeignTrace
from stall_analyzer.model.intervals import total, union
from stall_analyzer.model.units import PS_PER_US

# Keys before the events of a Kineto trace; TensorFlow writes neither.
HEADER_KEYS = ('"schemaVersion"', '"deviceProperties"')
# Categories of events: TensorFlow's have none.
OP_CATEGORIES = frozenset({"cpu_op", "Operator"})
DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"})
# Drawn around events, or repeated for the device: they have no time of their own.
COPIES = frozenset({"gpu_user_annotation", "Trace"})
STEP = "ProfilerStep#"
DATA_LOADER = "enumerate(DataLoader)"
LATEST_US = 2.0**63 / PS_PER_US


def is_pytorch(header: str, events: Sequence[object]) -> bool:
    """By what comes before the events, or else by the first events."""
    if all(key in header for key in HEADER_KEYS):
        return True
    return any(_category(event) in OP_CATEGORIES for event in events)


def summed_up(events: Iterable[object], host: str) -> ForeignTrace:
    starts, ends = array("d"), array("d")  # on the devices, in microseconds
    steps = array("d")
    first, last, loader = math.inf, 0.0, 0.0
    for event in events:
        span = _span(event)
        category = _category(event)
        if span is None or not isinstance(event, dict) or category in COPIES:
            continue
        name, (start, end) = str(event.get("name", "")), span
        first, last = min(first, start), max(last, end)
        if category in DEVICE_CATEGORIES:
            starts.append(start)
            ends.append(end)
        elif name.startswith(STEP):
            steps.append(end - start)
        elif name.startswith(DATA_LOADER):
            loader += end - start
    return ForeignTrace(
        "pytorch",
        host,
        duration_ps=_ps(max(last - first, 0.0)),
        steps=len(steps),
        step_ps=_ps(float(median(steps))) if len(steps) else 0,
        device_ps=_busy_ps(starts, ends),
        loader_ps=_ps(loader),
    )


def _category(event: object) -> str:
    category = event.get("cat") if isinstance(event, dict) else ""
    return category if isinstance(category, str) else ""


def _span(event: object) -> tuple[float, float] | None:
    """Begin and end in microseconds; None if they are missing or impossible."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    try:
        start, duration = float(event["ts"]), float(event.get("dur", 0))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    possible = 0 <= start < LATEST_US and 0 <= duration < LATEST_US
    return (start, start + duration) if possible else None


def _busy_ps(starts: array[float], ends: array[float]) -> int:
    if not len(starts):
        return 0
    zero = min(starts)  # so that small differences between large numbers stay exact
    begin, end = (
        np.rint((np.asarray(bound) - zero) * PS_PER_US).astype(np.int64) for bound in (starts, ends)
    )
    return int(total(*union(begin, end)))


def _ps(microseconds: float) -> int:
    return round(microseconds * PS_PER_US)
