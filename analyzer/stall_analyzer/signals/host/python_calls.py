"""Functions of the training thread that the Python tracer named: `$train.py:41 report`."""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.intervals import Tiling, innermost, time_in
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import name_of, names_where, rows_of_line
from stall_analyzer.model.units import Int64s

CALLS_CALLBACKS = "callback_list.py"  # the file of Keras from which every callback is called


@dataclass(frozen=True)
class PythonCall:
    """A callback or, outside callbacks, the innermost function."""

    name: str  # "train.py:41 report"
    count: int
    self_ps: int  # time of the wanted causes, without named functions that it calls


def python_calls(aligned: AlignedTrace, ledger: Tiling, wanted: Int64s) -> tuple[PythonCall, ...]:
    """Who took the wanted causes' time on the training thread, most first."""
    trace = aligned.trace
    assert aligned.training is not None
    span = rows_of_line(trace, aligned.training.line)
    is_python = names_where(trace, lambda name: name.startswith("$"))
    events = trace.events
    if not is_python[events.name[span]].any():
        return ()
    parent = np.where(events.parent[span] >= 0, events.parent[span] - span.start, -1)
    pieces = innermost(
        events.start_ps[span], events.duration_ps[span], parent.astype(np.int32), events.line[span]
    )
    owner = pieces.owner + span.start
    mine = is_python[events.name[owner]]
    shift = aligned.shift_ps
    spent = time_in(ledger, pieces.start[mine] + shift, pieces.end[mine] + shift, wanted)
    rows, piece = np.unique(owner[mine], return_inverse=True)
    sums = np.zeros(len(rows), dtype=np.int64)
    np.add.at(sums, piece, spent)
    self_ps: dict[str, int] = {}
    frames: dict[str, set[int]] = {}
    for row, ps in zip(rows[sums > 0], sums[sums > 0], strict=True):
        frame = _callback_frame(trace, int(row))
        name = name_of(trace, frame).removeprefix("$")
        self_ps[name] = self_ps.get(name, 0) + int(ps)
        frames.setdefault(name, set()).add(frame)
    found = [PythonCall(name, len(frames[name]), ps) for name, ps in self_ps.items()]
    return tuple(sorted(found, key=lambda call: -call.self_ps))


def _callback_frame(trace: Trace, row: int) -> int:
    """The callback that Keras called, if the function runs inside one; otherwise itself."""
    frame, parent = row, int(trace.events.parent[row])
    while parent >= 0:
        if CALLS_CALLBACKS in name_of(trace, parent):
            return frame
        frame, parent = parent, int(trace.events.parent[parent])
    return row
