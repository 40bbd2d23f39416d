"""The first epoch as the event files tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stall_analyzer.model import EventLog, Int64s, Series


@dataclass(frozen=True)
class LoggedEpoch:
    start_ns: int
    end_ns: int
    start_source: str
    end_source: str
    finished: bool  # False: no epoch's end was ever logged
    later_ns: tuple[int, ...]  # durations of the epochs after it


def epoch_from_events(events: EventLog | None) -> LoggedEpoch | None:
    """Begin and end of the first epoch, or None where the files do not speak of training."""
    if events is None:
        return None
    ends = _epoch_ends(events.train)
    batches = batch_times(events)
    if len(ends) == 0 and len(batches) == 0 and events.keras is None:
        return None
    end_ns, end_source = (
        (int(ends[0]), "first epoch's scalars")
        if len(ends)
        else (events.last_wall_ns or 0, "last record: no epoch was finished")
    )
    start_ns, start_source = _start(events, batches, end_ns)
    if end_ns <= start_ns:
        return None
    return LoggedEpoch(
        start_ns=start_ns,
        end_ns=end_ns,
        start_source=start_source,
        end_source=end_source,
        finished=len(ends) > 0,
        later_ns=tuple(int(gap) for gap in np.diff(ends) if gap > 0),
    )


def batch_times(events: EventLog) -> Int64s:
    """Wall times at which batches ended, where they were logged."""
    logged = [s.wall_ns for tag, s in events.train.items() if tag.startswith("batch_")]
    return max(logged, key=len) if logged else np.empty(0, dtype=np.int64)


def _epoch_ends(series: Mapping[str, Series]) -> Int64s:
    """When each epoch's first scalar was written, in order of the epochs."""
    logged = [s for tag, s in series.items() if tag.startswith("epoch_") and len(s)]
    if not logged:
        return np.empty(0, dtype=np.int64)
    steps = np.concatenate([s.step for s in logged])
    walls = np.concatenate([s.wall_ns for s in logged])
    order = np.lexsort((walls, steps))
    _, first = np.unique(steps[order], return_index=True)
    ends = walls[order][first]
    # A second fit() in the same file counts its epochs from 0 again: its times are not later.
    rising = np.flatnonzero(np.diff(ends) <= 0)
    return ends[: rising[0] + 1] if len(rising) else ends


def _start(events: EventLog, batches: Int64s, end_ns: int) -> tuple[int, str]:
    """The latest sure sign before the first batch; the model summary comes just before it."""
    signs = (
        (events.keras.wall_ns if events.keras else None, "Keras wrote its model"),
        (events.graph_wall_ns, "the graph was written"),
        (int(batches[0]) if len(batches) else None, "first batch had ended"),
        (events.first_wall_ns, "first record of the event file"),
    )
    for wall_ns, source in signs:
        if wall_ns is not None and wall_ns < end_ns:
            return wall_ns, source
    return end_ns, "no record before the first epoch's end"
