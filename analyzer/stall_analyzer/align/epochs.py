"""Where the epochs of a trace begin and end.

Keras 2 marks each batch with its epoch. Keras 3 marks nothing in an ordinary profile, but before
each epoch it resets its metrics and creates an iterator; before the first epoch of a fit() it
creates a dataset, or asks for the size of the user's. A custom loop only creates the iterator.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.align.traced_steps import Landmarks
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import TracedSteps
from stall_analyzer.model.units import Int64s

RESET = "Keras reset its metrics"


@dataclass(frozen=True)
class Epoch:
    """An epoch in one trace, in its time."""

    start_ps: int
    end_ps: int | None  # None if the trace does not show where it ends
    start_source: str
    end_source: str
    end_exact: bool  # only the work at the end of the epoch comes before it
    begin_seen: bool  # False if the trace began in the middle of it
    begins_fit: bool = False  # it is the first epoch of another fit() in the trace
    compiled_anew: bool = False  # … with another model, or one that was compiled again


@dataclass(frozen=True)
class _Begin:
    """A place in a trace where an epoch begins."""

    start_ps: int  # when the epoch begins
    previous_end_ps: int  # when the epoch before it ended
    source: str
    seen: bool = True
    fit: bool = False  # another fit() begins
    compiled: bool = False

    @property
    def ends_before(self) -> str:
        what = "fit()" if self.fit else "epoch"
        return f"the next {what} begins ({self.source})"


def find_epochs(steps: TracedSteps, landmarks: Landmarks) -> tuple[Epoch, ...]:
    """Epochs in order; empty if the trace holds no training step."""
    found = (_begin_at(step, steps, landmarks) for step in _candidates(steps, landmarks))
    begins = [begin for begin in found if begin is not None]
    if not begins:
        return ()
    ends: list[_Begin | None] = [*begins[1:], None]
    return tuple(
        Epoch(
            start_ps=begin.start_ps,
            end_ps=following.previous_end_ps if following else None,
            start_source=begin.source,
            end_source=following.ends_before if following else "",
            # Keras 2 deletes the old iterator first, and only then resets its metrics.
            end_exact=following is not None
            and following.source == RESET
            and steps.epoch is None
            and not following.fit,
            begin_seen=begin.seen,
            begins_fit=begin.fit,
            compiled_anew=begin.compiled,
        )
        for begin, following in zip(begins, ends, strict=True)
    )


def _gaps(steps: TracedSteps) -> Int64s:
    """When the gap before each step begins."""
    # An eager step lasts until the next fetch, so what happens between epochs is inside it.
    ends = steps.start_ps if steps.source == "iterator" else steps.end_ps
    return np.concatenate([[-(1 << 62)], ends[:-1]]).astype(np.int64)


def _candidates(steps: TracedSteps, marks: Landmarks) -> list[int]:
    """The first training step, and those with something between them and the previous step."""
    trained = np.flatnonzero(steps.training)
    if len(trained) == 0:
        return []
    if steps.epoch is not None:
        fresh = np.diff(steps.epoch[trained], prepend=steps.epoch[trained[:1]] - 1) != 0
        if steps.number is not None:  # a second fit() of one epoch has the same number again
            fresh[1:] |= np.diff(steps.number[trained]) < 0
    else:
        since, until = _gaps(steps)[trained], steps.start_ps[trained]
        fresh = np.zeros(len(trained), dtype=np.bool_)
        for at in (marks.reset_start_ps, marks.iterator_start_ps):
            fresh |= np.searchsorted(at, until) > np.searchsorted(at, since)
        fresh[0] = True
    return [int(step) for step in trained[fresh]]


def _begin_at(step: int, steps: TracedSteps, marks: Landmarks) -> _Begin | None:
    """How an epoch begins before this training step, or None if the epoch continues."""
    first = not steps.training[:step].any()
    since, until = int(_gaps(steps)[step]), int(steps.start_ps[step])
    made = _last_between(marks.iterator_start_ps, since, until)
    reset = _last_between(marks.reset_start_ps, since, until)
    if reset is not None and (made is not None or first or not _remade(marks, steps)):
        start, end = int(marks.reset_start_ps[reset]), int(marks.reset_end_ps[reset])
        datasets = _between(marks.dataset_ps, since, start)
        if first or not len(datasets):
            return _Begin(end, start, RESET)
        # What the program does between two fits belongs to neither.
        variables = _between(marks.variable_ps, since, start)
        over = min(*datasets[:1], *variables[:1], start)
        return _Begin(end, int(over), RESET, fit=True, compiled=len(variables) > 0)
    loop = marks.loop_ps if first and marks.loop_ps is not None else until
    if made is not None:
        # Keras 2 creates the iterator before the epoch begins, a loop when it begins.
        ends = marks.iterator_end_ps if steps.epoch is not None else marks.iterator_start_ps
        return _Begin(
            min(int(ends[made]), loop), int(marks.iterator_start_ps[made]), "iterator created"
        )
    if steps.epoch is not None and not first:
        return _Begin(until, until, "step marker")
    if first and marks.loop_ps is not None:
        return _Begin(loop, loop, "the first step is traced")
    return _Begin(until, until, "first step in the trace", seen=False) if first else None


def _remade(marks: Landmarks, steps: TracedSteps) -> bool:
    """Whether every epoch creates its own iterator. (Not with steps_per_epoch.)"""
    return bool((marks.iterator_start_ps > steps.start_ps[0]).any())


def _between(at: Int64s, since: int, until: int) -> Int64s:
    return at[(at >= since) & (at < until)]


def _last_between(at: Int64s, since: int, until: int) -> int | None:
    index = int(np.searchsorted(at, until)) - 1
    return index if index >= 0 and at[index] >= since else None
