"""One clock for traces and event files.

Newer traces say when they began. Older ones do not, but they show when summaries were written, and
the same records have wall times in the event file: the shift that makes the two sequences agree
gives the clock. A capture says when it started the profiler, to within a few milliseconds.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.columns import medians
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_named
from stall_analyzer.model.units import NS_PER_S, PS_PER_MS, PS_PER_NS, Int64s

SUMMARY_WRITES = frozenset(
    {"EagerLocalExecute: WriteSummary", "EagerLocalExecute: WriteScalarSummary"}
)
# A match must agree this well to be believed: real ones agree to microseconds.
MATCH_RESIDUAL_PS = 5 * PS_PER_MS
MATCH_LEAST = 3
MATCH_MOST = 64
# A session is named after the second in which it was exported, soon after its last batch.
EXPORTED_WITHIN_NS = 3 * NS_PER_S


def base_from_summaries(trace: Trace, events: EventLog) -> int | None:
    """Unix ns of the trace's time zero, from summary writes that both the trace and the log
    show."""
    rows = rows_named(trace, SUMMARY_WRITES.__contains__)
    written = np.sort(trace.events.start_ps[rows])[:MATCH_MOST]
    logged = _wall_times(events)
    if len(written) < MATCH_LEAST or len(logged) < len(written):
        return None
    # In picoseconds from the first record, so that int64 holds them.
    logged_ps = (logged - logged[0]) * 1000
    windows = np.lib.stride_tricks.sliding_window_view(logged_ps, len(written))
    shifts = medians(windows - written)
    residuals = medians(np.abs(windows - written - shifts[:, None]))
    best = int(residuals.argmin())
    if residuals[best] > MATCH_RESIDUAL_PS:
        return None
    return int(logged[0]) + int(shifts[best]) // 1000


def base_from_capture(trace: Trace, session: ProfileSession, events: EventLog) -> int | None:
    """Unix ns of the trace's time zero: when the capture opened the window."""
    name = session.id.rpartition("/")[2]
    opened = [r for c in _captures(trace, events) if (r := c.opened(name)) is not None]
    return opened[0].ns if opened else None


def closed_by_capture(trace: Trace, session: ProfileSession, events: EventLog) -> int | None:
    """Unix ns of the window's end. Nothing was recorded after it, but the trace may say that it was
    stopped much later: the capture saves it at low priority, while training continues."""
    name = session.id.rpartition("/")[2]
    saved = [r for c in _captures(trace, events) if (r := c.saved(name)) is not None]
    if not saved or saved[0].seconds is None:
        return None
    return saved[0].ns - round(saved[0].seconds * NS_PER_S)


def _captures(trace: Trace, events: EventLog) -> list[Capture]:
    return [capture for capture in events.captures if capture.trace_name == trace.host]


def base_from_profiled_batch(trace: Trace, session: ProfileSession, events: EventLog) -> int | None:
    """Unix ns of the trace's time zero: Keras 2 notes the end of the batch that it profiled."""
    if session.exported_unix_s is None:
        return None
    named_ns = session.exported_unix_s * NS_PER_S
    near = [ns for _, ns in events.profiled_batches if abs(ns - named_ns) < EXPORTED_WITHIN_NS]
    last_ns = int(trace.events.end_ps.max(initial=0)) // PS_PER_NS
    return near[0] - last_ns if len(near) == 1 else None


def _wall_times(events: EventLog) -> Int64s:
    """The times of every record that a summary op wrote: the scalars, and the model before them."""
    walls = [s.wall_ns for s in (*events.train.values(), *events.validation.values())]
    if events.keras is not None:
        walls.append(np.array([events.keras.wall_ns], dtype=np.int64))
    return np.sort(np.concatenate(walls)) if walls else np.empty(0, dtype=np.int64)
