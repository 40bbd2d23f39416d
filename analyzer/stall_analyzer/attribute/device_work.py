"""Accelerators: what the device did, if the trace shows it.

While a device computes, training makes progress whatever the host does; while it is idle, what the
host does is the reason. Of several devices, those inside a collective wait for the others: once
half of the active ones do, training waits. A device plane alone proves nothing: it is listed even
when the device was not used, and stays empty when it was used but could not be traced.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.decode.device_events import (
    DeviceKind,
    device_kind,
    devices,
    replicas,
    work_lines,
)
from stall_analyzer.model.causes import code
from stall_analyzer.model.columns import distinct, is_in
from stall_analyzer.model.intervals import (
    NOTHING,
    Layer,
    Tiling,
    innermost,
    label_at,
    paint,
    simplify,
)
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import Bools, Int64s

PROGRAM_LINE = "XLA Ops"  # on a TPU: there, a loop's event encloses its body
EVENT_MANAGERS = ("tf_GPU_Event_Manager", "tf_Device_Event_Manager")

# The first that applies at an instant is what the device does.
CAUSES: tuple[tuple[tuple[DeviceKind, ...], str], ...] = (
    (("kernel",), "compute.device"),
    (("collective",), "communication.collective"),
    (("infeed",), "input.wait"),
    (("to_device",), "input.host_to_device_copy"),
    (("from_device", "on_device", "outfeed"), "memory.transfer"),
)


@dataclass(frozen=True)
class DeviceView:
    """What the accelerators of a trace did."""

    tiling: Tiling  # cause codes, NOTHING while all devices are idle
    traced: bool  # some device has events
    used: bool  # a device worked, traced or not
    sentence: str  # what could be seen on devices


def device_view(trace: Trace, begin: int, end: int) -> DeviceView | None:
    """What the devices did over [begin, end) of trace time; None if none is listed."""
    listed = devices(trace)
    if not listed:
        return None
    working = [rows for plane in listed if len(rows := _rows(trace, plane))]
    if not working:
        idle = Tiling(np.array([begin, end]), np.array([NOTHING]))
        used = _was_used(trace)
        sentence = (
            "Device not traced: it was used, but the trace has no events for it, so its time is "
            "unknown."
            if used
            else "GPU not used: a device is listed, but no event shows it at work."
        )
        return DeviceView(idle, False, used, sentence)
    tilings = [_one_device(trace, rows, begin, end) for rows in working]
    have = "has" if len(working) == 1 else "have"
    sentence = f"{len(working)} of {len(listed)} listed devices {have} events."
    if (count := replicas(trace)) > len(working):
        sentence += f" The program has at least {count} replicas: not all of them were recorded."
    return DeviceView(_together(tilings), True, True, sentence)


def device_pieces(trace: Trace, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Start, end and name of what a device did; an op that encloses others keeps only the rest."""
    events = trace.events
    line = trace.lines[int(events.line[rows[0]])] if len(rows) else None
    if line is None or not line.name.startswith(PROGRAM_LINE):  # kernels may overlap but not nest
        return events.start_ps[rows], events.end_ps[rows], events.name[rows].astype(np.int64)
    place = np.full(len(events), -1, dtype=np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    parent = np.where(events.parent[rows] >= 0, place[events.parent[rows]], -1).astype(np.int32)
    pieces = innermost(events.start_ps[rows], events.duration_ps[rows], parent, events.line[rows])
    return pieces.start, pieces.end, events.name[rows[pieces.owner]].astype(np.int64)


def _rows(trace: Trace, plane: int) -> Int64s:
    return np.flatnonzero(is_in(trace.events.line, work_lines(trace, plane)))


def _one_device(trace: Trace, rows: Int64s, begin: int, end: int) -> Tiling:
    start, stop, name = device_pieces(trace, rows)
    kinds = {index: device_kind(trace.names[index]) for index in distinct(name).tolist()}

    def of(wanted: tuple[DeviceKind, ...]) -> Bools:
        return is_in(name, [index for index, kind in kinds.items() if kind in wanted])

    layers = [Layer(start[mask], stop[mask], code(cause))
              for wanted, cause in CAUSES if (mask := of(wanted)).any()]  # fmt: skip
    return paint(begin, end, layers)


def _together(tilings: list[Tiling]) -> Tiling:
    """What several devices are doing at an instant: progress beats waiting, unless half wait."""
    if len(tilings) == 1:
        return tilings[0]
    bounds = distinct(*(tiling.bounds for tiling in tilings))
    computing, communicating = code("compute.device"), code("communication.collective")
    count = {code(cause): np.zeros(len(bounds) - 1, dtype=np.int64) for _, cause in CAUSES}
    for tiling in tilings:
        label = label_at(tiling, bounds[:-1])
        for value in count:
            count[value] += label == value
    labels = np.full(len(bounds) - 1, NOTHING, dtype=np.int64)
    for value in reversed(count):
        labels[count[value] > 0] = value
    waiting = (count[communicating] > 0) & (count[communicating] >= count[computing])
    labels[waiting] = communicating
    return simplify(Tiling(bounds, labels))


def _was_used(trace: Trace) -> bool:
    """Threads that watch device events, and allocations on a device, exist only if one is used."""
    column = trace.stats.get("allocator_name")
    pools = {trace.strings[text] for text in distinct(column.values)} if column else set()
    managed = any(line.name.startswith(EVENT_MANAGERS) for line in trace.lines)
    return managed or any(pool.startswith("GPU") for pool in pools)
