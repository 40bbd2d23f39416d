"""How far a run got, according to its event files."""

from __future__ import annotations

import numpy as np

from stall_analyzer.align.logged_epoch import LOOP_END, batch_times, epoch_from_events
from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_NS


@dataclass(frozen=True)
class LoggedProgress:
    """The progress of a run whose event files show training."""

    finished: bool  # at least one epoch
    marks_epochs: bool  # Keras logs the end of each; a custom loop simply ends
    batches: int  # logged
    lasted_ps: int  # from the first sign of training to the last record
    usual_batch_ps: int | None  # between two logged batches
    silence_ps: int | None  # from the last batch to the last record of any kind
    last_batch_ns: int | None = None


def progress_of(events: EventLog | None) -> LoggedProgress | None:
    logged = epoch_from_events(events)
    if events is None or logged is None:
        return None
    walls = np.sort(batch_times(events))
    gaps = np.diff(walls) * PS_PER_NS
    last_ns = events.last_wall_ns or logged.end_ns
    return LoggedProgress(
        finished=logged.finished,
        marks_epochs=logged.end_source != LOOP_END,
        batches=len(walls),
        lasted_ps=max(last_ns - logged.start_ns, 0) * PS_PER_NS,
        usual_batch_ps=int(median(gaps)) if len(gaps) else None,
        silence_ps=max(last_ns - int(walls[-1]), 0) * PS_PER_NS if len(walls) else None,
        last_batch_ns=int(walls[-1]) if len(walls) else None,
    )
