"""From when on was the run computing for nothing?"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model import PS_PER_NS, EventLog, Series, Timeline

BATCH_LOSSES = ("batch_loss", "loss", "train_loss", "batch_train_loss")


def wasted_from_ps(timeline: Timeline) -> int | None:
    """Start of the step whose loss was the first to be NaN or infinite, in window time.

    The batch loss of Keras is the running mean of its epoch: one bad batch poisons the rest of the
    epoch's records even if the model stays healthy. So the next epoch must begin non-finite too,
    where there is one.
    """
    events, start_ns = timeline.events, timeline.window.start_unix_ns
    series = None if events is None else batch_loss(events)
    if series is None or start_ns is None:
        return None
    at = (series.wall_ns - start_ns) * PS_PER_NS
    bad = np.flatnonzero(
        ~np.isfinite(series.value) & (at >= 0) & (at < timeline.window.duration_ps)
    )
    if len(bad) == 0 or _recovers(series, at, timeline.window.duration_ps):
        return None
    logged = int(at[bad[0]])
    return max((s.start_ps for s in timeline.steps if s.start_ps <= logged), default=logged)


def batch_loss(events: EventLog) -> Series | None:
    return next((events.train[tag] for tag in BATCH_LOSSES if tag in events.train), None)


def _recovers(series: Series, at: np.ndarray[tuple[int], np.dtype[np.int64]], end_ps: int) -> bool:
    later = np.flatnonzero(at > end_ps)
    return len(later) > 0 and bool(np.isfinite(series.value[later[0]]))
