"""How much of a device's work runs at the speed of its memory.

If the compiler recorded how many bytes an op moves (XLA does so on TPUs) and the trace gives the
memory's speed, the time of the op shows how close to that speed it ran.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.decode.device_events import hlo_name, is_device, work_lines
from stall_analyzer.model.columns import is_in
from stall_analyzer.model.intervals import union
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Plane
from stall_analyzer.model.units import PS_PER_S, Float64s, Int64s
from stall_analyzer.signals.input.input_pipeline import NEVER, Spans

# An op that reaches this share of the memory's speed is held up by it; the rest is latency and
# refresh.
NEAR_PEAK = 0.6
# An op that seems faster than the memory did not move its bytes itself: it may only start a copy.
BEYOND_PEAK = 1.2


@dataclass(frozen=True)
class Roofline:
    """The roofline of the device that its memory holds up longest."""

    device: str = ""
    busy_ps: int = 0  # in ops whose traffic is known
    bound_ps: int = 0  # of that, in ops near the memory's speed
    bytes_per_s: float = 0.0  # the rate of those
    peak_bytes_per_s: float = 0.0
    bound_spans: Spans = NEVER  # when they ran, in window time
    costliest: tuple[str, ...] = ()  # names of their kinds, longest first

    @property
    def bound_share(self) -> float:
        return self.bound_ps / self.busy_ps if self.busy_ps else 0.0


def roofline(traces: Sequence[AlignedTrace]) -> Roofline:
    found = [
        _of_plane(aligned, index, plane)
        for aligned in traces
        for index, plane in enumerate(aligned.trace.planes)
        if is_device(plane.name) and plane.op_costs and _peak(plane)
    ]
    return max(found, key=lambda one: one.bound_ps, default=Roofline())


def _peak(plane: Plane) -> float:
    """Bytes per second; TPUs and GPUs name it differently."""
    gigabytes = plane.stats.get("peak_hbm_bw_gigabytes_per_second", 0.0)
    plain = plane.stats.get("memory_bandwidth", 0)
    return (1e9 * gigabytes if isinstance(gigabytes, float) else 0.0) or (
        float(plain) if isinstance(plain, int) else 0.0
    )


def _of_plane(aligned: AlignedTrace, index: int, plane: Plane) -> Roofline:
    trace, peak = aligned.trace, _peak(plane)
    rows = np.flatnonzero(is_in(trace.events.line, work_lines(trace, index)))
    moved = _moved_bytes(plane, trace.names)[trace.events.name[rows]]
    own = _own_ps(aligned, rows)
    rate = moved / np.maximum(own, 1) * PS_PER_S
    known = (moved > 0) & (rate <= BEYOND_PEAK * peak)
    bound = known & (rate >= NEAR_PEAK * peak)
    start = trace.events.start_ps[rows[bound]] + aligned.shift_ps
    bound_ps = int(own[bound].sum())
    return Roofline(
        device=plane.name.removeprefix("/device:"),
        busy_ps=int(own[known].sum()),
        bound_ps=bound_ps,
        bytes_per_s=float(moved[bound].sum()) / max(bound_ps, 1) * PS_PER_S,
        peak_bytes_per_s=peak,
        bound_spans=union(start, start + trace.events.duration_ps[rows[bound]]),
        costliest=_costliest(aligned, rows[bound], own[bound]),
    )


def _moved_bytes(plane: Plane, names: Sequence[str]) -> Float64s:
    """By index of the name; 0 where nothing is known."""
    costs = plane.op_costs
    return np.array([costs[name].memory_bytes if name in costs else 0 for name in names], float)


def _own_ps(aligned: AlignedTrace, rows: Int64s) -> Int64s:
    """The duration without the ops inside: a loop contains its body."""
    events = aligned.trace.events
    own = events.duration_ps.copy()
    inner = rows[events.parent[rows] >= 0]
    np.subtract.at(own, events.parent[inner], events.duration_ps[inner])
    return np.maximum(own[rows], 0)


def _costliest(aligned: AlignedTrace, rows: Int64s, own: Int64s) -> tuple[str, ...]:
    """An op's text is `%fusion.12 = f32[…] …`; its kind is `fusion`."""
    names = aligned.trace.names
    per_kind: dict[str, int] = {}
    for name, ps in zip(aligned.trace.events.name[rows].tolist(), own.tolist(), strict=True):
        kind = hlo_name(names[name]).partition(".")[0]
        per_kind[kind] = per_kind.get(kind, 0) + ps
    return tuple(sorted(per_kind, key=lambda kind: -per_kind[kind])[:3])
