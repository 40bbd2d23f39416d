"""The loss of each step, from what was logged.

Keras logs the mean of the epoch so far, which hides both sudden changes and flat ends. A mean over
t steps is a sum divided by t, so two means give the loss in between. A capture logs the loss of
some single steps: where both exist, the capture's values count.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np

from stall_analyzer.attribute.wasted_steps import batch_loss, captured_loss
from stall_analyzer.captures.capture_format import MarkName, Tag
from stall_analyzer.model.columns import between, distinct, is_in, median, rows_where, since_last
from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_NS, Float64s, Int64s

# A mean stored as float32 gives its sum only with this relative error: one rounding of the mean
# itself, and one of the sum that Keras keeps.
ROUNDING = 2 * float(np.finfo(np.float32).eps)
MEANS = Tag.LOSS_MEAN.removeprefix(Tag.ALL)
# If a loss comes out this far below zero, the series was not a running mean.
BELOW_ROUNDING = 10.0
BELOW_SHARE = 0.01


def _no_floats() -> Float64s:
    return np.empty(0)


def _no_ints() -> Int64s:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class StepLosses:
    """One entry per logged step; where not every step was logged, the mean since the last entry."""

    step: Int64s = field(default_factory=_no_ints)  # as logged: from 1 in Keras
    epoch: Int64s = field(default_factory=_no_ints)
    at_ps: Int64s = field(default_factory=_no_ints)  # when it was logged, in window time
    value: Float64s = field(default_factory=_no_floats)
    rounding: Float64s = field(default_factory=_no_floats)  # how far `value` may be off

    def __len__(self) -> int:
        return len(self.step)


def step_losses(events: EventLog, window_start_ns: int | None) -> StepLosses:
    logged, single = first_fit(batch_loss(events)), first_fit(_all_losses(events))
    found = [series for series in (logged, single) if series is not None and len(series)]
    if not found:
        return StepLosses()
    start_ns = window_start_ns if window_start_ns is not None else int(found[0].wall_ns[0])
    ends_ns = _epoch_ends_ns(events)
    losses = [_as_logged(series, start_ns, ends_ns) for series in found]
    # What Keras did not write is not a running mean.
    if logged is found[0] and ("batch_loss" in events.train or not events.train):
        undone = _undone(logged, losses[0].epoch, losses[0].at_ps)
        losses[0] = losses[0] if _is_impossible(undone, logged) else undone
    if single is found[-1]:  # a capture counts its steps from 0
        losses[-1] = replace(losses[-1], step=losses[-1].step + 1)
    return losses[0] if len(losses) == 1 else _merged(*losses)


def _all_losses(events: EventLog) -> Series | None:
    """The losses of the measured steps; each is the mean of all steps since the last one."""
    single = captured_loss(events)
    means = events.capture.series.get(MEANS) if events.capture is not None else None
    if single is None or means is None:
        return single
    place = np.minimum(np.searchsorted(means.step, single.step), len(means) - 1)
    is_mean = (means.step[place] == single.step) & np.isfinite(single.value)
    return replace(single, value=np.where(is_mean, means.value[place], single.value))


def _as_logged(series: Series, start_ns: int, ends_ns: Int64s) -> StepLosses:
    epoch = np.searchsorted(ends_ns, series.wall_ns).astype(np.int64)
    at_ps = (series.wall_ns - start_ns) * PS_PER_NS
    return StepLosses(series.step, epoch, at_ps, series.value, np.zeros(len(series)))


def _epoch_ends_ns(events: EventLog) -> Int64s:
    epoch_loss = first_fit(events.train.get("epoch_loss"))
    if epoch_loss is not None:
        return epoch_loss.wall_ns
    marks = events.capture.first_fit if events.capture is not None else ()
    return np.array([mark.ns for mark in marks if mark.what == MarkName.EPOCH_END], dtype=np.int64)


def _merged(means: StepLosses, single: StepLosses) -> StepLosses:
    """Losses from means count up to the first that is not finite: it spoils all means after it."""
    bad = np.flatnonzero(~np.isfinite(means.value))
    known = means.step <= (means.step[bad[0]] if len(bad) else means.step.max(initial=0))
    kept = known & ~is_in(means.step, single.step)
    step = np.concatenate([means.step[kept], single.step])
    order = np.argsort(step, kind="stable")

    def both(one: Any, other: Any) -> Any:
        return np.concatenate([one[kept], other])[order]

    return StepLosses(
        step[order],
        both(means.epoch, single.epoch),
        both(means.at_ps, single.at_ps),
        both(means.value, single.value),
        both(means.rounding, single.rounding),
    )


def first_fit(series: Series | None) -> Series | None:
    """Up to where the steps start over: what follows is another fit() in the same files."""
    if series is None:
        return None
    again = rows_where(series.step[1:] < series.step[:-1])
    if len(again) == 0:
        return series
    end = int(again[0]) + 1
    return Series(series.step[:end], series.wall_ns[:end], series.value[:end])


def _is_impossible(undone: StepLosses, series: Series) -> bool:
    """Was the series not a running mean after all?

    A custom train_step() may return the loss of the batch alone, and TensorFlow 2.0 and 2.1 logged
    nothing else. Undoing a mean that was not there gives losses far below zero.
    """
    finite = series.value[np.isfinite(series.value)]
    if len(finite) == 0 or finite.min() < 0:
        return False
    below = -undone.value - BELOW_ROUNDING * undone.rounding
    return bool((below > BELOW_SHARE * median(finite)).any())


def _undone(series: Series, epoch: Int64s, at_ps: Int64s) -> StepLosses:
    pieces = []
    for number in distinct(epoch):
        rows = rows_where(epoch == number)
        count = _steps_into_epoch(series.step[rows], first=number == 0)
        if count is None:
            continue
        mean = series.value[rows]
        width = since_last(count)
        if not (width > 0).all():  # steps logged twice or out of order
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            total = count * mean
            value = since_last(total) / width
        # Once a sum was infinite, it says nothing about the steps after that.
        value[~np.isfinite(mean)] = np.nan
        pieces.append((rows, value, ROUNDING * np.abs(total) / width))
    if not pieces:
        return StepLosses()
    rows = np.concatenate([piece[0] for piece in pieces])
    value = np.concatenate([piece[1] for piece in pieces])
    rounding = np.concatenate([piece[2] for piece in pieces])
    return StepLosses(series.step[rows], epoch[rows], at_ps[rows], value, rounding)


def _steps_into_epoch(step: Int64s, first: bool) -> Int64s | None:
    """How many steps each mean covers; None if the records do not show it."""
    if first:
        return step if step[0] >= 1 else step + 1  # some versions count from 0
    # If only every nth step was logged, the place of the epoch's first record in it is not known.
    dense = bool((between(step) == 1).all())
    return np.arange(1, len(step) + 1, dtype=np.int64) if dense else None
