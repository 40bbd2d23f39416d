"""When the run was computing for nothing."""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_NS, Int64s

BATCH_LOSSES = ("batch_loss", "loss", "train_loss", "batch_train_loss")
CAPTURED_BATCH_LOSS = Tag.TRAIN.removeprefix(Tag.ALL) + BATCH_LOSSES[0]
CAPTURED_LOSS = Tag.LOSS.removeprefix(Tag.ALL)
CAPTURED_SKIPS = Tag.SKIPPED_UPDATES.removeprefix(Tag.ALL)


def wasted_from_ps(timeline: Timeline) -> int | None:
    """Start of the step whose loss was the first to be NaN or infinite, in window time.

    The batch loss of Keras is the running mean of its epoch: one bad batch poisons the rest of the
    epoch's records even if the model stays healthy. So the next epoch, if there is one, must also
    begin non-finite. A capture has the loss of single steps: none after it may be finite.
    """
    events, start_ns = timeline.events, timeline.window.start_unix_ns
    if events is None or start_ns is None:
        return None
    end_ps, own = timeline.window.duration_ps, captured_loss(events)
    series = batch_loss(events)
    if series is None:
        series = own
    if series is None:
        return None
    at = (series.wall_ns - start_ns) * PS_PER_NS
    bad = np.flatnonzero(~np.isfinite(series.value) & (at >= 0) & (at < end_ps))
    if len(bad) == 0:
        return None
    logged = int(at[bad[0]])
    if own is not None:
        later = own.value[(own.wall_ns - start_ns) * PS_PER_NS > logged]
        if np.isfinite(later).any():
            return None
    elif _recovers(series, at, end_ps):
        return None
    return max((s.start_ps for s in timeline.steps if s.start_ps <= logged), default=logged)


def skipped_spans_ps(timeline: Timeline) -> tuple[Int64s, Int64s]:
    """Stretches in which loss scaling skipped every update, as a capture counted them: the steps
    between two readings of the count are all skipped or none."""
    nothing = np.array([], dtype=np.int64)
    events, start_ns = timeline.events, timeline.window.start_unix_ns
    capture = events.capture if events is not None else None
    counted = capture.series.get(CAPTURED_SKIPS) if capture is not None else None
    if counted is None or start_ns is None:
        return nothing, nothing
    steps = np.diff(counted.step, prepend=-1)
    all_skipped = (np.diff(counted.value, prepend=0.0) == steps) & (steps > 0)
    ends = (counted.wall_ns - start_ns) * PS_PER_NS
    starts = np.concatenate([[0], ends[:-1]])
    return starts[all_skipped], ends[all_skipped]


def captured_loss(events: EventLog) -> Series | None:
    """The loss of single steps, but not of every step."""
    series = events.capture.series.get(CAPTURED_LOSS) if events.capture is not None else None
    return series if series is not None and len(series) else None


def batch_loss(events: EventLog) -> Series | None:
    """As logged by Keras's callback, or by a capture that could not see the loss of single
    steps."""
    logged = next((events.train[tag] for tag in BATCH_LOSSES if tag in events.train), None)
    if logged is not None or events.capture is None or captured_loss(events) is not None:
        return logged
    return events.capture.series.get(CAPTURED_BATCH_LOSS)


def _recovers(series: Series, at: Int64s, end_ps: int) -> bool:
    later = np.flatnonzero(at > end_ps)
    return len(later) > 0 and bool(np.isfinite(series.value[later[0]]))
