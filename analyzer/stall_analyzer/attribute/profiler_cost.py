"""What measuring cost: the profiler collects and writes the trace while training waits.

That happens after the trace has ended, so only the event files show it: the first batch after the
profile is logged late.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.align.logged_epoch import batch_times
from stall_analyzer.attribute.refine import relabel_inside
from stall_analyzer.captures.capture_format import OWN_WORK
from stall_analyzer.model.causes import CAUSES, codes
from stall_analyzer.model.columns import median
from stall_analyzer.model.intervals import Tiling
from stall_analyzer.model.timeline import AlignedTrace, Timeline, TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_called
from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS

# The batch after the profile must be this much later than usual to be called late.
LATE_FACTOR = 3
LATE_LEAST_PS = 20 * PS_PER_MS


def with_profiler_stop(tiling: Tiling, aligned: AlignedTrace, timeline: Timeline) -> Tiling:
    """Time after the trace in which the profiler held training up."""
    events, window = timeline.events, timeline.window
    start, stop = aligned.covered_ps
    outside = start == stop or stop >= window.duration_ps
    if events is None or window.start_unix_ns is None or outside:
        return tiling
    logged = np.sort(batch_times(events) - window.start_unix_ns) * PS_PER_NS
    after = logged[(logged > stop) & (logged < window.duration_ps)]
    if len(after) < 2:
        return tiling
    usual = int(median(np.diff(after)))
    late = int(after[0]) - stop - usual
    if late < LATE_FACTOR * usual + LATE_LEAST_PS:
        return tiling
    untraced = codes("unknown.not_traced")
    return relabel_inside(
        tiling, np.array([stop]), np.array([stop + late]), untraced, "profiler.stop"
    )


def with_capture(tiling: Tiling, trace: Trace, training: TrainingThread) -> Tiling:
    """Whatever StallCallback and its probe did on the training thread: they mark it."""
    events = trace.events
    rows = rows_called(trace, OWN_WORK)
    rows = rows[events.line[rows] == training.line]
    return relabel_inside(
        tiling, events.start_ps[rows], events.end_ps[rows], codes(*CAUSES), "profiler.capture"
    )
