"""The machine during the first epoch, as a capture sampled it once a second.

Counters and sizes are written when they have changed; until then, the value before applies.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_format import HostMetric, Tag
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_NS, PS_PER_S, Float64s, Int64s

# A process causes a few hundred page faults to map its libraries and files; paging, thousands.
PAGING_FAULTS = 2_000


@dataclass(frozen=True)
class MachineSignals:
    """None where the kernel does not say."""

    memory_stalled_ps: int | None  # at least one thread of the container waited for memory
    throttled_ps: int | None  # the CPU limit kept threads from running; sum over all cores
    major_faults: int | None  # pages that had to be read from a disk
    swapped_bytes: int | None  # how much more was swapped out at the end than at the beginning
    read_bytes: int | None  # by the process, from its disks
    limit_bytes: int | None
    peak_bytes: int | None  # resident memory of the process
    cores: int | None


@dataclass(frozen=True)
class ResidentMemory:
    """The resident memory of the process during the first fit()."""

    step: Int64s  # steps that had finished
    wall_ns: Int64s
    bytes: Float64s

    def at(self, ns: int) -> float | None:
        row = int(np.searchsorted(self.wall_ns, ns, side="right")) - 1
        return float(self.bytes[row]) if row >= 0 else None


def machine_signals(capture: Capture | None, window: Window) -> MachineSignals | None:
    if capture is None or window.start_unix_ns is None or window.duration_ps == 0:
        return None
    begin_ns = window.start_unix_ns
    end_ns = begin_ns + window.duration_ps // PS_PER_NS

    def inside(name: str) -> Float64s | None:
        """The value at the beginning, and all values written up to the end."""
        series = _host(capture, name)
        if series is None:
            return None
        first = max(int(np.searchsorted(series.wall_ns, begin_ns, side="right")) - 1, 0)
        last = max(int(np.searchsorted(series.wall_ns, end_ns, side="right")), first + 1)
        return series.value[first:last]

    def grown(name: str, unit: int = 1) -> int | None:
        values = inside(name)
        return round(max(float(values[-1] - values[0]), 0.0) * unit) if values is not None else None

    limit, resident = inside(HostMetric.LIMIT), inside(HostMetric.RSS)
    return MachineSignals(
        memory_stalled_ps=grown(HostMetric.MEMORY_STALLED, PS_PER_S),
        throttled_ps=grown(HostMetric.THROTTLED, PS_PER_S),
        major_faults=grown(HostMetric.MAJOR_FAULTS),
        swapped_bytes=grown(HostMetric.SWAP_USED),
        read_bytes=grown(HostMetric.READ),
        limit_bytes=int(limit[-1]) if limit is not None else None,
        peak_bytes=int(resident.max()) if resident is not None else None,
        cores=capture.environment.cores,
    )


def resident_memory(capture: Capture | None) -> ResidentMemory | None:
    series = _host(capture, HostMetric.RSS) if capture is not None else None
    if series is None:
        return None
    return ResidentMemory(series.step, series.wall_ns, series.value)


def _host(capture: Capture, name: str) -> Series | None:
    series = capture.series.get((Tag.HOST + name).removeprefix(Tag.ALL))
    if series is None:
        return None
    known = np.isfinite(series.value)
    return (
        Series(series.step[known], series.wall_ns[known], series.value[known])
        if known.any()
        else None
    )
