"""Accelerators: what the device did, where the trace shows it.

While a device computes, training goes on whatever the host does; while it is idle, the host's
reason is the reason. A device plane alone proves nothing: it is listed even when the device was
not used, and stays empty when it was used but could not be traced.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.decode.vocabulary import DERIVED_DEVICE_LINES
from stall_analyzer.model.causes import code
from stall_analyzer.model.intervals import NOTHING, Layer, Tiling, paint
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import names_where
from stall_analyzer.model.units import Bools

DEVICE_PREFIXES = ("/device:GPU", "/device:TPU", "/device:CUSTOM")
# Lines that repeat what other lines of the plane say in smaller pieces.
SUMMARY_LINES = DERIVED_DEVICE_LINES | {"Steps", "XLA Modules", "Step"}
EVENT_MANAGERS = ("tf_GPU_Event_Manager", "tf_Device_Event_Manager")


@dataclass(frozen=True)
class DeviceView:
    """What the accelerators of a trace did."""

    tiling: Tiling  # cause codes, NOTHING while all devices are idle
    traced: bool  # some device has events
    used: bool  # a device worked, traced or not
    sentence: str  # what could be seen of devices


def device_view(trace: Trace, begin: int, end: int) -> DeviceView | None:
    """What the devices did over [begin, end) of trace time; None where none is listed."""
    listed = [p.name for p in trace.planes if p.name.startswith(DEVICE_PREFIXES)]
    if not listed:
        return None
    rows = np.flatnonzero(_on_device(trace)[trace.events.line])
    events = trace.events
    if len(rows) == 0:
        idle = Tiling(np.array([begin, end]), np.array([NOTHING]))
        used = _was_used(trace)
        sentence = (
            "Device not traced: it was used, but its plane is empty, so its time is unknown."
            if used
            else "GPU not used: a device is listed, but no event shows it at work."
        )
        return DeviceView(idle, False, used, sentence)
    copies = names_where(trace, lambda n: n.lower().startswith(("memcpy", "memset")))
    to_device = names_where(trace, lambda n: n.startswith(("MemcpyH2D", "MemcpyHtoD")))
    collective = names_where(trace, lambda n: "nccl" in n.lower() or "all-reduce" in n.lower())
    name = events.name[rows]
    groups: tuple[tuple[Bools, str], ...] = (
        (~copies[name] & ~collective[name], "compute.device"),
        (collective[name], "communication.collective"),
        (to_device[name], "input.host_to_device_copy"),
        (copies[name] & ~to_device[name], "memory.transfer"),
    )
    layers = [
        Layer(events.start_ps[rows[mask]], events.end_ps[rows[mask]], code(cause))
        for mask, cause in groups
    ]
    busy = len({trace.lines[line].plane for line in np.unique(events.line[rows])})
    sentence = f"{busy} of {len(listed)} listed devices have events."
    return DeviceView(paint(begin, end, layers), True, True, sentence)


def _on_device(trace: Trace) -> Bools:
    return np.array(
        [
            trace.planes[line.plane].name.startswith(DEVICE_PREFIXES)
            and line.name not in SUMMARY_LINES
            for line in trace.lines
        ],
        dtype=np.bool_,
    )


def _was_used(trace: Trace) -> bool:
    """Threads that watch device events, or allocations on a device, exist only where one works."""
    column = trace.stats.get("allocator_name")
    pools = {trace.strings[text] for text in np.unique(column.values)} if column else set()
    managed = any(line.name.startswith(EVENT_MANAGERS) for line in trace.lines)
    return managed or any(pool.startswith("GPU") for pool in pools)
