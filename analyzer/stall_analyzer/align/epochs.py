"""Where the epochs of a trace begin and end.

Keras 2 marks each batch with its epoch. Keras 3 marks nothing in an ordinary profile, but before
each epoch it resets its metrics and makes an iterator. A custom loop only makes the iterator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stall_analyzer.align.traced_steps import Landmarks
from stall_analyzer.model.timeline import TracedSteps
from stall_analyzer.model.units import Int64s

RESET = "Keras reset its metrics"


@dataclass(frozen=True)
class Epoch:
    """An epoch in one trace, in its time."""

    start_ps: int
    end_ps: int | None  # None: the trace does not show where it ends
    start_source: str
    end_source: str
    end_exact: bool  # nothing but the end of the epoch lies before it
    begin_seen: bool  # False: the trace began in the middle of it


@dataclass(frozen=True)
class _Begin:
    """A place in a trace where an epoch begins."""

    start_ps: int  # of the epoch that begins
    previous_end_ps: int  # of the epoch before
    source: str
    seen: bool = True


def find_epochs(steps: TracedSteps, landmarks: Landmarks) -> tuple[Epoch, ...]:
    """Epochs in order; empty where the trace holds no training step."""
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
            end_source=f"the next epoch begins ({following.source})" if following else "",
            # Keras 2 takes the old iterator down, and only then resets its metrics.
            end_exact=following is not None and following.source == RESET and steps.epoch is None,
            begin_seen=begin.seen,
        )
        for begin, following in zip(begins, ends, strict=True)
    )


def _gaps(steps: TracedSteps) -> Int64s:
    """When the gap before each step begins."""
    # An eager step lasts until the next fetch, so what happens between epochs is inside it.
    ends = steps.start_ps if steps.source == "iterator" else steps.end_ps
    return np.concatenate([[-(1 << 62)], ends[:-1]]).astype(np.int64)


def _candidates(steps: TracedSteps, marks: Landmarks) -> list[int]:
    """The first training step, and those with something between them and the step before."""
    trained = np.flatnonzero(steps.training)
    if len(trained) == 0:
        return []
    if steps.epoch is not None:
        fresh = np.diff(steps.epoch[trained], prepend=steps.epoch[trained[:1]] - 1) != 0
    else:
        since, until = _gaps(steps)[trained], steps.start_ps[trained]
        fresh = np.zeros(len(trained), dtype=np.bool_)
        for at in (marks.reset_start_ps, marks.iterator_start_ps):
            fresh |= np.searchsorted(at, until) > np.searchsorted(at, since)
        fresh[0] = True
    return [int(step) for step in trained[fresh]]


def _begin_at(step: int, steps: TracedSteps, marks: Landmarks) -> _Begin | None:
    """How an epoch begins before this training step, or None if it goes on."""
    first = not steps.training[:step].any()
    since, until = int(_gaps(steps)[step]), int(steps.start_ps[step])
    made = _last_between(marks.iterator_start_ps, since, until)
    reset = _last_between(marks.reset_start_ps, since, until)
    if reset is not None and (made is not None or first or not _remade(marks, steps)):
        end = int(marks.reset_end_ps[reset])
        return _Begin(end, int(marks.reset_start_ps[reset]), RESET)
    if made is not None:
        # Keras 2 makes the iterator before the epoch begins, a loop when it begins.
        ends = marks.iterator_end_ps if steps.epoch is not None else marks.iterator_start_ps
        return _Begin(int(ends[made]), int(marks.iterator_start_ps[made]), "iterator made")
    if steps.epoch is not None and not first:
        return _Begin(until, until, "step marker")
    return _Begin(until, until, "first step in the trace", seen=False) if first else None


def _remade(marks: Landmarks, steps: TracedSteps) -> bool:
    """Does every epoch make its own iterator? (Not with steps_per_epoch.)"""
    return bool((marks.iterator_start_ps > steps.start_ps[0]).any())


def _last_between(at: Int64s, since: int, until: int) -> int | None:
    index = int(np.searchsorted(at, until)) - 1
    return index if index >= 0 and at[index] >= since else None
