"""Which accelerators a host has, and what the trace shows about them."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.attribute.device_work import device_view
from stall_analyzer.decode.device_events import DEVICE_PREFIXES, is_work_line, replicas
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace


@dataclass(frozen=True)
class DeviceSignals:
    """The accelerators of a host, and whether they were traced."""

    listed: tuple[str, ...]  # names of the planes: "/device:GPU:0"
    at_work: tuple[str, ...]  # those with events
    used: bool  # a device worked, traced or not
    replicas: int = 0  # those of a distribution strategy, as far as names of ops show


def device_signals(traces: Sequence[AlignedTrace]) -> DeviceSignals:
    listed: dict[str, bool] = {}
    used = False
    for trace in (aligned.trace for aligned in traces):
        for index, plane in enumerate(trace.planes):
            if plane.name.startswith(DEVICE_PREFIXES):
                listed[plane.name] = listed.get(plane.name, False) or any(
                    line.plane == index
                    and is_work_line(line.name)
                    and line.last_event > line.first_event
                    for line in trace.lines
                )
        view = device_view(trace, 0, 1)
        used = used or (view is not None and view.used)
    working = tuple(name for name, works in listed.items() if works)
    count = max((replicas(aligned.trace) for aligned in traces), default=0)
    return DeviceSignals(tuple(listed), working, used, count)
