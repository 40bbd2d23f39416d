"""Whether a run that has finished no epoch is still running.

A live capture writes every second. For other logs, only the age of the newest record counts,
compared with how far apart the records are. The times of the files say nothing: copying changes
them.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS, batch_series
from stall_analyzer.captures.capture_format import HostMetric, MarkName, Tag
from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.ending.process_end import NS, SILENT_NS, was_killed

# TensorFlow and TensorBoard write to disk every two minutes: this is twice that, and a step.
RECENT_NS = 300 * NS
# Steps of one run differ: a run that was quiet for this many times its longest pause has ended.
PAUSES = 3
CPU = (Tag.HOST + HostMetric.CPU).removeprefix(Tag.ALL)
OVER = frozenset({MarkName.EPOCH_END, MarkName.FIT_END})


@dataclass(frozen=True)
class StillRunning:
    """How far a run has gotten that is still running."""

    step: int  # the newest that is known; 0: none
    lasted_ps: int  # from the first sign of training to that step; without one, until it was read
    step_ps: int | None  # of a usual one
    silent_ps: int  # from its last record until it was read
    steps: int | None = None  # of an epoch
    surely: bool = False  # a capture says so
    since_step_ps: int = 0  # from that step until the last record


def still_running(events: EventLog | None) -> StillRunning | None:
    """None if an epoch has finished, the run has ended, or nothing shows either."""
    if events is None or events.read_ns is None:
        return None
    if events.capture is not None:
        return _of_capture(events.capture, events.read_ns)
    series = _telling(events)
    begin_ns, last_ns = events.first_wall_ns, events.last_wall_ns
    # A custom loop has no epoch to finish: what it logged so far is all there is to judge.
    if _has_finished_epoch(events) or events.keras is None or begin_ns is None or last_ns is None:
        return None
    # A clock that is ahead of ours by as much says nothing either.
    if abs(events.read_ns - last_ns) > max(RECENT_NS, PAUSES * _longest_pause_ns(series)):
        return None
    step = max(int(series.step[-1]), len(series)) if series is not None else 0  # from 0, or from 1
    until_ns = int(series.wall_ns[-1]) if series is not None else events.read_ns
    silent_ps = _ps(events.read_ns - last_ns)
    return StillRunning(step, _ps(until_ns - begin_ns), _step_ps(series), silent_ps)


def is_timeless(events: EventLog | None) -> bool:
    """Whether a report on this run would be the same at any later time: it is not running, or the
    report is about a part that is over. A captured process has ended only if its last record says
    so."""
    if events is None:
        return True
    if events.captures:
        return all(capture.end is not None for capture in events.captures)
    return events.keras is None or _has_finished_epoch(events)


def _of_capture(capture: Capture, read_ns: int) -> StillRunning | None:
    over = capture.end is not None or any(mark.what in OVER for mark in capture.marks)
    is_ahead = capture.last_ns - read_ns > SILENT_NS  # a clock that says nothing about now
    if over or not capture.trains or is_ahead or was_killed(capture, read_ns):
        return None
    begin, series = capture.marks[0], capture.series.get(STEP_SECONDS)
    measured = int(series.step[-1]) + 1 if series else 0  # not every step has one
    step = max([measured, *(look.step for look in capture.looks[-1:])])
    last_step_ns = _last_step_ns(capture, series)
    return StillRunning(
        step - (begin.step or 0),
        _ps((capture.last_ns if step else read_ns) - begin.ns),
        _step_ps(series),
        _ps(read_ns - capture.last_ns),
        steps=begin.steps,
        surely=True,
        since_step_ps=_ps(capture.last_ns - last_step_ns) if last_step_ns else 0,
    )


def _last_step_ns(capture: Capture, series: Series | None) -> int:
    """Not every step is recorded, but the host's samples say how many had finished."""
    ends = [int(series.wall_ns[-1])] if series else []
    samples = capture.series.get(CPU)
    if samples is not None and len(samples) and samples.step[-1] > 0:
        ends.append(int(samples.wall_ns[samples.step == samples.step[-1]].min()))
    return max(ends, default=0)


def _ps(ns: int) -> int:
    return max(ns, 0) * PS_PER_NS


def _step_ps(series: Series | None) -> int | None:
    """Between records, which may skip steps; the median, because the first steps wait."""
    if series is None:
        return None
    steps, pauses = np.diff(series.step), np.diff(series.wall_ns)
    usual = (steps > 0) & (pauses > 0)
    return int(median(pauses[usual] / steps[usual]) * PS_PER_NS) if usual.any() else None


def _telling(events: EventLog) -> Series | None:
    """The scalar that covers most steps: the one for batches, as Keras names it, or any other."""
    return batch_series(events) or max(events.train.values(), key=len, default=None)


def _longest_pause_ns(series: Series | None) -> int:
    if series is None or len(series) < 2:
        return 0
    return int(np.diff(np.sort(series.wall_ns)).max())


def _has_finished_epoch(events: EventLog) -> bool:
    """Whether training or its validation, which Keras logs at the end, finished an epoch."""
    return any(tag.startswith("epoch_") for tag in (*events.train, *events.validation))
