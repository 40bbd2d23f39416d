"""Whether a run that has finished no epoch is still going on.

A capture that lives writes every second. Of other logs only the age of the newest record tells,
held against how far apart their records are. The times of the files say nothing: copying changes
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS, batch_series
from stall_analyzer.captures.capture_format import MarkName
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.ending.process_end import NS, SILENT_NS

# TensorFlow and TensorBoard write to disk every two minutes: twice that, and a step.
RECENT_NS = 300 * NS
# Steps of one run differ: what has been quiet for three times its longest pause has ended.
PAUSES = 3
OVER = frozenset({MarkName.EPOCH_END, MarkName.FIT_END})


@dataclass(frozen=True)
class StillRunning:
    """How far a run is that goes on."""

    step: int  # the newest that is known; 0: none
    lasted_ps: int  # from the first sign of training to that step; without one, until it was read
    step_ps: int | None  # of a usual one
    silent_ps: int  # from its last record until it was read
    surely: bool  # a capture says so


def still_running(events: EventLog | None) -> StillRunning | None:
    """None where an epoch was finished, or the run ended, or nothing tells."""
    if events is None or events.read_ns is None:
        return None
    if events.capture is not None:
        return _of_capture(events.capture, events.read_ns)
    series = _telling(events)
    begin_ns, last_ns = events.first_wall_ns, events.last_wall_ns
    trains = series is not None or events.keras is not None
    if _has_finished_epoch(events) or not trains or begin_ns is None or last_ns is None:
        return None
    # A clock that is ahead of ours by as much says nothing, either.
    if abs(events.read_ns - last_ns) > max(RECENT_NS, PAUSES * _longest_pause_ns(series)):
        return None
    return _so_far(series, begin_ns, last_ns, events.read_ns, surely=False)


def _of_capture(capture: Capture, read_ns: int) -> StillRunning | None:
    over = capture.end is not None or any(mark.what in OVER for mark in capture.marks)
    if over or not capture.trains or abs(read_ns - capture.last_ns) > SILENT_NS:
        return None
    steps = capture.series.get(STEP_SECONDS)
    return _so_far(steps, capture.marks[0].ns, capture.last_ns, read_ns, surely=True)


def _so_far(
    series: Series | None, begin_ns: int, last_ns: int, read_ns: int, *, surely: bool
) -> StillRunning:
    silent_ps = max(read_ns - last_ns, 0) * PS_PER_NS
    if series is None or not len(series):
        return StillRunning(0, max(read_ns - begin_ns, 0) * PS_PER_NS, None, silent_ps, surely)
    step = max(int(series.step[-1]), len(series))  # the first of them is 0, or 1
    lasted_ns = max(int(series.wall_ns[-1]) - begin_ns, 0)
    return StillRunning(step, lasted_ns * PS_PER_NS, _step_ps(series), silent_ps, surely)


def _step_ps(series: Series) -> int | None:
    """Between records that need not be of all steps; the median, because the first ones wait."""
    steps, pauses = np.diff(series.step), np.diff(series.wall_ns)
    usual = (steps > 0) & (pauses > 0)
    return int(np.median(pauses[usual] / steps[usual]) * PS_PER_NS) if usual.any() else None


def _telling(events: EventLog) -> Series | None:
    """The scalar that tells of most steps: that of batches, as Keras names them, or any."""
    return batch_series(events) or max(events.train.values(), key=len, default=None)


def _longest_pause_ns(series: Series | None) -> int:
    if series is None or len(series) < 2:
        return 0
    return int(np.diff(np.sort(series.wall_ns)).max())


def _has_finished_epoch(events: EventLog) -> bool:
    """Of training or of its validation, which Keras logs at its end."""
    return any(tag.startswith("epoch_") for tag in (*events.train, *events.validation))
