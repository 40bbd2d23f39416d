"""The first epoch according to the event files: as a capture marked it, or by what was logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

import numpy as np

from stall_analyzer.align.marks import steps_of, validation_of
from stall_analyzer.captures.capture_format import MarkName, Tag
from stall_analyzer.captures.capture_records import MarkRecord
from stall_analyzer.events.fits import is_same_model
from stall_analyzer.model.columns import rows_where
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.kinds import LAST_RECORD
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import NS_PER_S, PS_PER_S, Int64s

MARKED = "the capture marked it"
# More picoseconds than int64 can hold: the clock jumped, or the files are from several runs.
LONGEST_NS = 100 * 24 * 3600 * NS_PER_S
LOOP_END = "last record of a loop that logs no epochs"
LEAST_RECORDS = 3  # for a scalar to show the course of a loop
LONGEST_STEP_S = 1e6  # a damaged record may hold more than int64 can
STEP_SECONDS = Tag.STEP_SECONDS.removeprefix(Tag.ALL)


@dataclass(frozen=True)
class LoggedEpoch:
    """The first epoch by the clock of the event files."""

    start_ns: int
    end_ns: int
    start_source: str
    end_source: str
    finished: bool  # False if no end of an epoch was logged
    later_ns: tuple[int, ...]  # durations of the epochs after it
    marked: bool = False  # a capture marked it: there is nothing to guess
    start_error_ns: int = 0
    training_end_ns: int | None = None  # only if a capture marked it
    validation_begin_ns: int | None = None
    validation_begin_error_ns: int = 0
    validation_end_ns: int | None = None
    first_step: int | None = None  # as the process counts them; only if a capture marked it
    steps: int | None = None

    @property
    def is_too_long(self) -> bool:
        return self.end_ns - self.start_ns > LONGEST_NS


def epoch_from_events(events: EventLog | None, traced_ns: int | None = None) -> LoggedEpoch | None:
    """Begin and end of the first epoch, or None if the files say nothing about training.

    `traced_ns`: when the first trace of a step began; the epoch cannot begin after that.
    """
    if events is None or events.is_foreign:
        return None
    if events.capture is not None:
        marked = _epoch_from_marks(events.capture)
        if marked is not None:
            return marked
    ends = _epoch_ends(events.train)
    batches = batch_times(events)
    if len(ends) == 0 and len(batches) == 0 and events.keras is None:
        return None
    end_ns, end_source = (
        (int(ends[0]), "first epoch's scalars")
        if len(ends)
        else (events.last_wall_ns or 0, LAST_RECORD if events.keras is not None else LOOP_END)
    )
    start_ns, start_source, error_ns = _start(events, batches, end_ns, traced_ns)
    if end_ns <= start_ns:
        return None
    validation = validation_of(events, start_ns, end_ns)
    return LoggedEpoch(
        start_ns=start_ns,
        end_ns=end_ns,
        start_source=start_source,
        end_source=end_source,
        finished=len(ends) > 0,
        later_ns=(*(int(gap) for gap in np.diff(ends) if gap > 0), *_in_later_fits(events)),
        start_error_ns=error_ns,
        validation_begin_ns=validation.begin_ns if validation else None,
        validation_begin_error_ns=validation.begin_error_ns if validation else 0,
        validation_end_ns=validation.end_ns if validation else None,
        steps=steps_of(events, start_ns, end_ns) if len(ends) else None,
    )


def _in_later_fits(events: EventLog) -> Iterator[int]:
    """Durations of the epochs of later fits, as long as they train the same model."""
    for fit in takewhile(lambda fit: is_same_model(events, fit), events.later_fits):
        epoch = epoch_from_events(fit)
        if epoch is not None and epoch.finished:
            yield from (epoch.end_ns - epoch.start_ns, *epoch.later_ns)


def batch_times(events: EventLog) -> Int64s:
    """Wall times at which batches ended, if they were logged."""
    steps = events.capture.series.get(STEP_SECONDS) if events.capture is not None else None
    batches = steps if steps is not None and len(steps) else batch_series(events)
    return batches.wall_ns if batches is not None else np.empty(0, dtype=np.int64)


def batch_series(events: EventLog) -> Series | None:
    """What was logged batch by batch; if there are several such scalars, the longest. A custom loop
    may give its scalars any name.
    """
    logged = [s for tag, s in events.train.items() if tag.startswith("batch_")]
    by_keras = events.keras is not None or any(tag.startswith("epoch_") for tag in events.train)
    if not logged and not by_keras:
        logged = [s for s in events.train.values() if len(s) >= LEAST_RECORDS]
    return max(logged, key=len, default=None)


def step_durations(capture: Capture) -> Int64s | None:
    """How long each batch took, if a capture says so."""
    series = capture.series.get(STEP_SECONDS)
    if series is None or len(series) == 0:
        return None
    known = np.where(np.isfinite(series.value), np.clip(series.value, 0, LONGEST_STEP_S), 0.0)
    return np.asarray(known * PS_PER_S, dtype=np.int64)


def _epoch_from_marks(capture: Capture) -> LoggedEpoch | None:
    """The first epoch of the first fit()."""
    marks = capture.first_fit
    epochs = _marked_epochs(marks, capture)
    if not epochs:
        return _whole_loop(marks, capture) if marks else None
    for fit in capture.fits[1:] if capture.is_one_model else ():
        epochs += _marked_epochs(fit, capture)
    later = tuple(epoch.end_ns - epoch.start_ns for epoch in epochs[1:] if epoch.finished)
    return replace(epochs[0], later_ns=later)


def _marked_epochs(marks: Sequence[MarkRecord], capture: Capture) -> list[LoggedEpoch]:
    """The epochs of one fit."""
    begins = [i for i, mark in enumerate(marks) if mark.what == MarkName.EPOCH_BEGIN]
    return [
        _marked_epoch(marks[begin], marks[begin + 1 : over], marks[over : over + 1], capture)
        for begin, over in pairwise([*begins, len(marks)])
    ]


def _whole_loop(marks: Sequence[MarkRecord], capture: Capture) -> LoggedEpoch | None:
    """A loop that marks no epochs: from its beginning to its end."""
    ends = [mark.ns for mark in marks if mark.what == MarkName.FIT_END]
    end_ns = ends[0] if ends else capture.last_ns
    if end_ns <= marks[0].ns:
        return None
    return LoggedEpoch(
        start_ns=marks[0].ns,
        end_ns=end_ns,
        start_source="the captured loop began",
        end_source="the captured loop ended: it marked no epochs" if ends else LAST_RECORD,
        finished=bool(ends),
        later_ns=(),
    )


def _marked_epoch(
    begin: MarkRecord,
    inside: Sequence[MarkRecord],
    following: Sequence[MarkRecord],
    capture: Capture,
) -> LoggedEpoch:
    """An epoch ends when the next one begins, or fit() ends: callbacks at its end belong to it."""
    at = {mark.what: mark.ns for mark in (*following, *inside)}
    finished = MarkName.EPOCH_END in at
    over_ns = [at[what] for what in (MarkName.EPOCH_BEGIN, MarkName.FIT_END) if what in at]
    last_ns = at[MarkName.EPOCH_END] if finished else capture.last_ns
    return LoggedEpoch(
        start_ns=begin.ns,
        end_ns=max(begin.ns, over_ns[0] if over_ns else last_ns),
        start_source=MARKED,
        end_source=MARKED if finished else LAST_RECORD,
        finished=finished,
        later_ns=(),
        marked=True,
        training_end_ns=at.get(MarkName.EPOCH_END),
        validation_begin_ns=at.get(MarkName.VALIDATION_BEGIN),
        validation_end_ns=at.get(MarkName.VALIDATION_END),
        first_step=begin.step,
        steps=_steps_between(begin, inside),
    )


def _steps_between(begin: MarkRecord, inside: Sequence[MarkRecord]) -> int | None:
    """How many steps a finished epoch has."""
    ends = [mark.step for mark in inside if mark.what == MarkName.EPOCH_END]
    if not ends or ends[0] is None or begin.step is None or ends[0] <= begin.step:
        return None
    return ends[0] - begin.step


def _epoch_ends(series: Mapping[str, Series]) -> Int64s:
    """When each epoch's first scalar was written, in order of the epochs."""
    logged = [_first_fit(s) for tag, s in series.items() if tag.startswith("epoch_") and len(s)]
    if not logged:
        return np.empty(0, dtype=np.int64)
    steps = np.concatenate([s.step for s in logged])
    walls = np.concatenate([s.wall_ns for s in logged])
    order = np.lexsort((walls, steps))
    steps, walls = steps[order], walls[order]
    ends: Int64s = walls[np.concatenate([[True], steps[1:] != steps[:-1]])]
    falls = rows_where(ends[1:] <= ends[:-1])  # the clock was set back
    return ends[: falls[0] + 1] if len(falls) else ends


def _first_fit(series: Series) -> Series:
    """A second fit() in the same file counts its epochs from 0 again."""
    falls = rows_where(series.step[1:] <= series.step[:-1])
    first = slice(int(falls[0]) + 1 if len(falls) else None)
    return Series(series.step[first], series.wall_ns[first], series.value[first])


def _start(
    events: EventLog, batches: Int64s, end_ns: int, traced_ns: int | None
) -> tuple[int, str, int]:
    """The latest sure sign before the first batch, and how far off it may be (ns); the model
    summary is written just before that batch."""
    if events.keras is None and events.graph_wall_ns is None:
        signs_of_work = (*batches[:1].tolist(), events.first_wall_ns, traced_ns, end_ns)
        opened_ns = _opened(events, min(ns for ns in signs_of_work if ns is not None))
        if opened_ns is not None:
            return opened_ns, "creation of the event file, known to the second", NS_PER_S // 2
    signs = (
        (events.keras.wall_ns if events.keras else None, "Keras wrote its model"),
        (events.graph_wall_ns, "the graph was written"),
        (int(batches[0]) if len(batches) else None, "first batch had ended"),
        (events.first_wall_ns, "first record of the event file"),
    )
    for wall_ns, source in signs:
        if wall_ns is not None and wall_ns < end_ns:
            return wall_ns, source, 0
    return end_ns, "no record before the first epoch's end", 0


def _opened(events: EventLog, first_ns: int) -> int | None:
    """When the file was created, before its first record: the middle of the second in its name."""
    if events.opened_ns is None or events.opened_ns >= first_ns:
        return None
    return (events.opened_ns + min(events.opened_ns + NS_PER_S, first_ns)) // 2
