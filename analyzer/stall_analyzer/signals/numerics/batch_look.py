"""What a capture saw of the batches: ranges, labels, and what a constant answer would cost."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from stall_analyzer.captures.capture_format import BatchNumber, Tag
from stall_analyzer.model.columns import distinct, median
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Float64s, Int64s
from stall_analyzer.signals.numerics.model_settings import (
    BINARY,
    CATEGORICAL,
    ModelSettings,
    settings_of,
)

# Shares of classes need some labels of each: with fewer, their entropy comes out too low.
LABELS_PER_KIND = 10
# A loss is compared with the cost of a constant answer only if that is known this precisely.
WELL_KNOWN = 0.05
# Looks spread over this much of the first epoch have seen its data; over this many steps, if its
# length is not known.
ENOUGH_OF_EPOCH = 0.4
ENOUGH_STEPS = 64
LEAST_LOOKS = 3
VARIANCES = ("mean_squared_error",)


@dataclass(frozen=True)
class Values:
    """Inputs, labels or outputs, over all batches that were looked at."""

    smallest: float
    largest: float
    spread: float  # usual standard deviation within a batch
    not_finite: float  # the largest share in any batch
    not_finite_step: int | None  # the first step with any, from 1

    @property
    def is_constant(self) -> bool:
        return self.smallest == self.largest


@dataclass(frozen=True)
class Labels:
    """What a capture knows about the labels; None where it does not apply."""

    kinds: int | None  # different classes
    seen: int  # rows
    entropy: float | None  # cost of a constant answer in cross-entropy, as Keras averages it
    variance: float | None  # the same in squared error
    within: float | None  # share of the variance that is within batches: about 1 if shuffled
    mean: float


@dataclass(frozen=True)
class Broadcast:
    """Labels and outputs differ by one axis: for each measured step, the loss, and what it would be
    row by row and over all pairs."""

    loss: Float64s
    by_row: Float64s
    each_with_each: Float64s


@dataclass(frozen=True)
class BatchLook:
    """Only numbers about the batches; a log contains nothing of the data itself."""

    step: Int64s  # the ones that were looked at, from 1
    rows: int  # in a usual batch
    spans: bool  # the looks cover enough of the first epoch to say something about its data
    inputs: Values | None
    outputs: Values | None
    targets: Values | None
    labels: Labels | None
    constant_inputs: Float64s  # share of features that are the same in all rows, for each look
    constant_outputs: Float64s  # the same for outputs
    broadcast: Broadcast | None
    # What a constant answer costs on these labels, in terms of the logged loss; None where the loss
    # is not known or is not a plain average.
    baseline: float | None

    @property
    def baseline_error(self) -> float:
        """Its standard error, because it comes from a sample of the labels. This is the error of a
        variance; shares of classes are known better."""
        if self.baseline is None or self.labels is None:
            return 0.0
        return self.baseline * math.sqrt(2 / max(self.labels.seen, 1))

    @property
    def known_baseline(self) -> float | None:
        """The baseline, if enough labels were seen to judge a loss by it."""
        if self.baseline is None or self.baseline_error > WELL_KNOWN * self.baseline:
            return None
        return self.baseline

    @property
    def looks(self) -> int:
        return len(self.step)


def batch_look(events: EventLog | None, capture: Capture | None) -> BatchLook | None:
    if events is None or capture is None:
        return None
    prefix = Tag.BATCH.removeprefix(Tag.ALL)
    series = {
        tag.removeprefix(prefix): fit
        for tag, logged in capture.series.items()
        if tag.startswith(prefix) and len(fit := _in_first_fit(logged, capture))
    }
    if not series:
        return None
    step = distinct(np.concatenate([each.step for each in series.values()]))
    labels = _labels(series)
    return BatchLook(
        step=step + 1,
        rows=round(float(median(_values(series, BatchNumber.ROWS, 0.0)))),
        spans=_spans(step, capture.steps_of_first_epoch),
        inputs=_range(series, BatchNumber.INPUTS),
        outputs=_range(series, BatchNumber.OUTPUTS),
        targets=_range(series, BatchNumber.LABELS),
        labels=labels,
        constant_inputs=_values(series, BatchNumber.INPUTS_CONSTANT),
        constant_outputs=_values(series, BatchNumber.OUTPUTS_CONSTANT),
        broadcast=_broadcast(series, capture),
        baseline=_baseline(labels, settings_of(events.stored_model)),
    )


def _in_first_fit(series: Series, capture: Capture) -> Series:
    """Later fits may use other data."""
    ends_ns = [marks[0].ns for marks in capture.fits[1:2]]
    end = int(np.searchsorted(series.wall_ns, ends_ns[0])) if ends_ns else len(series)
    return Series(series.step[:end], series.wall_ns[:end], series.value[:end])


def _spans(step: Int64s, of_epoch: int | None) -> bool:
    enough = ENOUGH_OF_EPOCH * of_epoch if of_epoch else ENOUGH_STEPS
    return len(step) >= LEAST_LOOKS and bool(step[-1] + 1 >= enough)


def _values(series: Mapping[str, Series], name: str, *otherwise: float) -> Float64s:
    return series[name].value if name in series else np.array(otherwise, dtype=np.float64)


def _range(series: Mapping[str, Series], name: str) -> Values | None:
    not_finite = series.get(name + BatchNumber.NOT_FINITE)
    if not_finite is None:
        return None
    bad = np.flatnonzero(not_finite.value > 0)
    return Values(
        smallest=float(_values(series, name + BatchNumber.SMALLEST, np.nan).min()),
        largest=float(_values(series, name + BatchNumber.LARGEST, np.nan).max()),
        spread=float(median(_values(series, name + BatchNumber.SPREAD, np.nan))),
        not_finite=float(not_finite.value.max()),
        not_finite_step=int(not_finite.step[bad[0]]) + 1 if len(bad) else None,
    )


def _labels(series: Mapping[str, Series]) -> Labels | None:
    seen, mean = series.get(BatchNumber.LABELS_SEEN), series.get(BatchNumber.LABELS_MEAN)
    if seen is None or mean is None:
        return None
    kinds = _last(series, BatchNumber.LABELS_KINDS)
    return Labels(
        kinds=None if kinds is None else round(kinds),
        seen=round(float(seen.value[-1])),
        entropy=_last(series, BatchNumber.LABELS_ENTROPY),
        variance=_last(series, BatchNumber.LABELS_VARIANCE),
        within=_last(series, BatchNumber.LABELS_WITHIN),
        mean=float(np.mean(mean.value)),
    )


def _last(series: Mapping[str, Series], name: str) -> float | None:
    value = float(series[name].value[-1]) if name in series else None
    return value if value is not None and np.isfinite(value) else None


def _broadcast(series: Mapping[str, Series], capture: Capture) -> Broadcast | None:
    loss = capture.series.get(Tag.LOSS.removeprefix(Tag.ALL))
    names = (
        (BatchNumber.SQUARES, BatchNumber.SQUARES_BROADCAST),
        (BatchNumber.ABSOLUTE, BatchNumber.ABSOLUTE_BROADCAST),
    )
    if loss is None or names[0][0] not in series:
        return None
    # Squares or absolute values, whichever are closer to the loss, by row or over all pairs.
    found = [_at_same_steps(loss, series[one], series[other]) for one, other in names]
    return min(found, key=_distance)


def _at_same_steps(loss: Series, by_row: Series, each: Series) -> Broadcast:
    _, at, place = np.intersect1d(loss.step, by_row.step, return_indices=True)
    return Broadcast(loss.value[at], by_row.value[place], each.value[place])


def _distance(found: Broadcast) -> float:
    if not len(found.loss):
        return np.inf
    off = np.minimum(np.abs(found.loss - found.by_row), np.abs(found.loss - found.each_with_each))
    return float(median(off / np.maximum(np.abs(found.loss), 1e-30)))


def _baseline(labels: Labels | None, settings: ModelSettings) -> float | None:
    if labels is None or not settings.averaged or settings.smoothed:
        return None
    if settings.loss in VARIANCES:
        return labels.variance
    if settings.loss == BINARY:
        return labels.entropy if labels.kinds is None else None
    if settings.loss not in CATEGORICAL or not labels.kinds or labels.entropy is None:
        return None
    return labels.entropy if labels.seen >= LABELS_PER_KIND * labels.kinds else None
