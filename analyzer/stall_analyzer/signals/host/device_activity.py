"""What each accelerator did: its kernels, its copies by direction, and how long it was at work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from stall_analyzer.attribute.device_work import device_pieces
from stall_analyzer.decode.device_events import (
    COPIES,
    DeviceKind,
    device_kind,
    devices,
    work_lines,
)
from stall_analyzer.model.columns import distinct, is_in
from stall_analyzer.model.intervals import total
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import StatValue, Trace
from stall_analyzer.model.trace_rows import ABSENT, stat_of
from stall_analyzer.model.units import Bools, Int64s

SIZE = pattern(r"\b(?:size|num_bytes):(\d+)")
PAGEABLE = "kind_src:pageable", "kind_dst:pageable"


@dataclass(frozen=True)
class Done:
    """Things of one kind that a device did."""

    count: int = 0
    ps: int = 0  # added up, even where they overlap


@dataclass(frozen=True)
class Copies(Done):
    moved_bytes: int = 0
    pageable_ps: int = 0  # from or to host memory that is not pinned


@dataclass(frozen=True)
class DeviceActivity:
    """One device, over the traced part of the window."""

    name: str  # "GPU:0"
    busy_ps: int  # whatever it did
    computing_ps: int  # in kernels that are not collectives
    communicating_ps: int  # in collectives while it computed nothing
    ops: dict[str, Done] = field(default_factory=dict)  # by name: kernels, copies, ops of XLA
    copies: dict[DeviceKind, Copies] = field(default_factory=dict)
    facts: dict[str, StatValue] = field(default_factory=dict)  # of the card

    def count_of(self, kind: DeviceKind) -> int:
        return sum(done.count for name, done in self.ops.items() if device_kind(name) == kind)


def device_activity(traces: Sequence[AlignedTrace]) -> tuple[DeviceActivity, ...]:
    """Devices that have events, in order."""
    return tuple(
        activity
        for aligned in traces
        for plane in devices(aligned.trace)
        if (activity := _one(aligned, plane)) is not None
    )


def _one(aligned: AlignedTrace, plane: int) -> DeviceActivity | None:
    trace = aligned.trace
    begin, end = (bound - aligned.shift_ps for bound in aligned.covered_ps)
    rows = np.flatnonzero(is_in(trace.events.line, work_lines(trace, plane)))
    rows = rows[(trace.events.end_ps[rows] > begin) & (trace.events.start_ps[rows] < end)]
    if len(rows) == 0:
        return None
    start, stop, name = device_pieces(trace, rows)
    start, stop = np.clip(start, begin, end), np.clip(stop, begin, end)
    kind_of = {index: device_kind(trace.names[index]) for index in distinct(name).tolist()}

    def of(kinds: tuple[DeviceKind, ...], names: Int64s) -> Bools:
        return is_in(names, [index for index, kind in kind_of.items() if kind in kinds])

    computing, talking = of(("kernel",), name), of(("kernel", "collective"), name)
    computing_ps = total(start[computing], stop[computing])
    working = ~of(("none",), name)
    return DeviceActivity(
        name=trace.planes[plane].name.removeprefix("/device:"),
        busy_ps=total(start[working], stop[working]),
        computing_ps=computing_ps,
        communicating_ps=total(start[talking], stop[talking]) - computing_ps,
        ops={
            trace.names[index]: Done(
                int((trace.events.name[rows] == index).sum()),
                int((stop - start)[name == index].sum()),
            )
            for index in distinct(trace.events.name[rows]).tolist()
        },
        copies=_copies(trace, rows, kind_of),
        facts=dict(trace.planes[plane].stats),
    )


def _copies(trace: Trace, rows: Int64s, kind_of: dict[int, DeviceKind]) -> dict[DeviceKind, Copies]:
    events, found = trace.events, {}
    for kind in COPIES:
        mine = rows[is_in(events.name[rows], [i for i, k in kind_of.items() if k == kind])]
        if len(mine):
            moved, pageable = _details(trace, mine)
            took = events.duration_ps[mine]
            found[kind] = Copies(
                len(mine), int(took.sum()), int(moved.sum()), int(took[pageable].sum())
            )
    return found


def _details(trace: Trace, rows: Int64s) -> tuple[Int64s, Bools]:
    """Bytes of each copy, and whether its host side was pageable memory."""
    texts = stat_of(trace, "memcpy_details", rows)
    moved = np.maximum(stat_of(trace, "num_bytes", rows), 0)
    pageable = np.zeros(len(rows), dtype=np.bool_)
    for text in distinct(texts[texts != ABSENT]).tolist():
        said = trace.strings[text]
        if size := SIZE.search(said):
            moved[texts == text] = int(size[1])
        pageable[texts == text] = any(words in said.lower() for words in PAGEABLE)
    return moved, pageable
