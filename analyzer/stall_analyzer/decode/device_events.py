"""What the events of an accelerator's plane mean, by the names that its profiler gives them.

CUPTI names copies by their direction. AMD's roctracer and rocprofiler do so in their own words, and
show copies made by kernels as those kernels. A TPU has no streams: the ops of its XLA program
follow each other on one line, a loop encloses its body, and waits for copies and for the host are
ops, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from stall_analyzer.decode.vocabulary import DERIVED_DEVICE_LINES
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.trace import Trace

DeviceKind: TypeAlias = Literal[
    "kernel", "collective", "to_device", "from_device", "on_device", "infeed", "outfeed", "none"
]
COPIES: tuple[DeviceKind, ...] = ("to_device", "from_device", "on_device")

DEVICE_PREFIXES = ("/device:GPU", "/device:TPU", "/device:CUSTOM")
# Lines that repeat what other lines of the plane say, in larger pieces or under other names.
SUMMARY_LINES = DERIVED_DEVICE_LINES | {"Steps", "XLA Modules", "Step"}
# Background work on a TPU holds up its program only if an op waits for it, and what CUPTI itself
# does is not the device's work.
BESIDE_LINES = ("Async", "CUPTI overhead", "Overlay", "TC Overlay", "Host Offload Ops", "Graph")

STREAM = "Stream"

_BY_BEGINNING: tuple[tuple[str, DeviceKind], ...] = (
    ("memcpyh2d", "to_device"),
    ("memcpyhtod", "to_device"),
    ("copyhosttodevice", "to_device"),
    ("memory_copy_host_to_device", "to_device"),
    ("memcpyd2h", "from_device"),
    ("memcpydtoh", "from_device"),
    ("copydevicetohost", "from_device"),
    ("memory_copy_device_to_host", "from_device"),
    ("memcpy", "on_device"),
    ("memset", "on_device"),
    ("copydevicetodevice", "on_device"),
    ("memory_copy_", "on_device"),
    ("fillbuffer", "on_device"),
    ("__amd_rocclr_copybuffer", "on_device"),
    ("__amd_rocclr_fillbuffer", "on_device"),
    ("memoryalloc", "none"),
    ("memoryfree", "none"),
    ("memoryresidency", "none"),
)
_HLO: tuple[tuple[str, DeviceKind], ...] = (
    ("all-reduce", "collective"),
    ("all-gather", "collective"),
    ("all-to-all", "collective"),
    ("reduce-scatter", "collective"),
    ("collective-", "collective"),
    ("send", "collective"),
    ("recv", "collective"),
    ("infeed", "infeed"),
    ("outfeed", "outfeed"),
    ("copy-start", "on_device"),
    ("copy-done", "on_device"),
)
NCCL = ("nccl", "rccl")
# `%copy-done.2 = f32[5,1024]{1,0:T(8,128)} copy-done((f32[…`: the word before the arguments.
_OPCODE = pattern(r" = .*?\s([a-z][a-z0-9-]*)\(")

_REPLICA = pattern(r"replica_(\d{1,4})/")


def is_device(plane_name: str) -> bool:
    return plane_name.startswith(DEVICE_PREFIXES)


def is_work_line(line_name: str) -> bool:
    """Whether a line of a device shows the device at work."""
    return line_name not in SUMMARY_LINES and not line_name.startswith(BESIDE_LINES)


def device_kind(name: str) -> DeviceKind:
    """What a device is doing during an event with this name."""
    lower = name.lower()
    for beginning, kind in _BY_BEGINNING:
        if lower.startswith(beginning):
            return kind
    if any(word in lower for word in NCCL):
        return "collective"
    opcode = hlo_opcode(name)
    return next((kind for beginning, kind in _HLO if opcode.startswith(beginning)), "kernel")


def hlo_opcode(name: str) -> str:
    """`%fusion.3 = f32[8] fusion(…)` is `fusion`; older traces name the op alone: `infeed.1`."""
    found = _OPCODE.search(name)
    return found[1] if found else name.lstrip("%").partition(".")[0]


def hlo_name(name: str) -> str:
    """`%fusion.3 = f32[8] fusion(…)` is called `fusion.3`."""
    return name.partition(" = ")[0].lstrip("%")


def work_lines(trace: Trace, plane: int) -> list[int]:
    """Lines of one device that show it at work.

    A GPU works in streams; the lines of its XLA ops are derived from those, and span the gaps.
    """
    lines = [
        index
        for index, line in enumerate(trace.lines)
        if line.plane == plane and is_work_line(line.name)
    ]
    streams = [index for index in lines if trace.lines[index].name.startswith(STREAM)]
    return streams or lines


def replicas(trace: Trace) -> int:
    """How many replicas a distribution strategy made, as far as op names tell; 0 for none."""
    numbers = [int(found[1]) for name in trace.names if (found := _REPLICA.match(name))]
    return max(numbers) + 1 if numbers else 0


def devices(trace: Trace) -> Sequence[int]:
    """Planes of accelerators, at work or not."""
    return [index for index, plane in enumerate(trace.planes) if is_device(plane.name)]
