"""Our figures of a trace, by the code that makes the report."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from stall_analyzer.align.align import align
from stall_analyzer.align.traced_steps import device_steps
from stall_analyzer.attribute.xla import is_compiler_event
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.decode.device_events import devices, hlo_name
from stall_analyzer.model.intervals import total
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import name_of, rows_named
from stall_analyzer.model.units import PS_PER_US
from stall_analyzer.signals.host.device_activity import device_activity
from stall_analyzer.signals.memory.allocators import NUMBERED, memory_in_use
from tests.xcheck.figures import Figure, Figures
from tests.xspace import host_file


def our_figures(path: Path) -> Figures:
    trace = read_trace(host_file(path, path.stat().st_size))
    timeline = align([(ProfileSession("session", str(path.parent), ()), trace)], None)
    (aligned,) = timeline.traces
    events = trace.events
    # The whole trace, not the window of the report.
    whole = (int(events.start_ps.min()), int(events.end_ps.max()) + 1)
    aligned = replace(aligned, shift_ps=0, covered_ps=whole)
    figures: Figures = defaultdict(float)
    for device in device_activity([aligned]):
        figures[Figure("device busy, µs", device.name)] = device.busy_ps / PS_PER_US
        for name, done in device.ops.items():
            for key in {name, hlo_name(name)}:
                figures[Figure("op time, µs", key)] += done.ps / PS_PER_US
                figures[Figure("op count", key)] += done.count
        for kind, copies in device.copies.items():
            direction = f"{device.name} {kind.replace('_', ' ')}"
            figures[Figure("copies, µs", direction)] = copies.ps / PS_PER_US
            figures[Figure("copies", direction)] = copies.count
            figures[Figure("copied bytes", direction)] = copies.moved_bytes
    for name, (_, in_use) in memory_in_use([aligned]).items():
        allocator = name.removeprefix(NUMBERED)
        figures[Figure("memory peak, bytes", allocator)] = float(in_use.max(initial=0))
    compiling = rows_named(trace, is_compiler_event)
    figures[Figure("compiling, µs", "host")] = (
        total(events.start_ps[compiling], events.end_ps[compiling]) / PS_PER_US
    )
    found = [step for plane in devices(trace) for step in _steps(trace, plane)]
    first = min((start for _, start, _ in found), default=0)
    for name, start, end in found:
        figures[Figure("step, µs", name)] = (end - start) / PS_PER_US
        figures[Figure("step begins, µs after the first", name)] = (start - first) / PS_PER_US
    if (steps := device_steps(trace)) is not None:
        longest = np.max(steps.end_ps - steps.start_ps)
        figures[Figure("longest step, µs", "all devices")] = float(longest / PS_PER_US)
    return figures


def _steps(trace: Trace, plane: int) -> list[tuple[str, int, int]]:
    """Of one device, with its name."""
    device, events = trace.planes[plane].name.removeprefix("/device:"), trace.events
    return [
        (f"{device}, {name_of(trace, row)}", int(events.start_ps[row]), int(events.end_ps[row]))
        for line in trace.lines
        if line.plane == plane and line.name == "Steps"
        for row in range(line.first_event, line.last_event)
    ]
