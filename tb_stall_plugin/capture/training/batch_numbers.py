"""Reduces a sample of a batch to a few numbers. Nothing else of it is stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stall_analyzer.captures.capture_format import BatchNumber, Tag
from tb_stall_plugin.capture.training.batch_sample import (
    INPUTS,
    LABELS,
    OUTPUTS,
    WEIGHTS,
    Part,
    Rows,
)

MOST_SYMBOLS = 4096  # classes whose shares are kept
SAME = 1e-6  # relative difference that float32 cannot show
SUMS_TO_ONE = 1e-3

Doubles = npt.NDArray[np.float64]


class BatchNumbers:
    """For one fit: numbers about each batch that is looked at, and about all labels so far."""

    def __init__(self) -> None:
        self._labels = LabelTally()

    def of(self, parts: Sequence[Part]) -> dict[str, float]:
        """Scalars by tag."""
        inputs = [part for part in parts if part.role == INPUTS]
        by_role = {part.role: part for part in parts}
        labels, outputs, weights = (by_role.get(role) for role in (LABELS, OUTPUTS, WEIGHTS))
        values: dict[str, float] = {}
        if inputs:
            values |= _range_of(BatchNumber.INPUTS, [part.sample for part in inputs])
            values[BatchNumber.ROWS] = inputs[0].rows
            values[BatchNumber.INPUTS_CONSTANT] = _constant([part.sample for part in inputs])
        if outputs is not None:
            values |= _range_of(BatchNumber.OUTPUTS, [outputs.sample])
            if len(outputs.sample) > 1:
                values[BatchNumber.OUTPUTS_CONSTANT] = _constant([outputs.sample])
        if labels is not None:
            values |= _range_of(BatchNumber.LABELS, [labels.sample])
            values |= self._labels.add(labels, outputs, weights)
        if labels is not None and outputs is not None:
            values |= _broadcast(labels, outputs)
        return {Tag.BATCH + name: value for name, value in values.items()}


class LabelTally:
    """Labels of all batches that were looked at: what would a constant answer cost?"""

    def __init__(self) -> None:
        self._symbols: dict[float, float] = {}  # sums of weights by class
        self._seen = 0  # number of labels
        self._weight = 0.0
        self._columns: Doubles = np.zeros((3, 0))  # sums of weights, of values, of their squares
        self._within = 0.0  # sum of the variances within batches, without weights
        self._batches = 0
        # Sums of the means and of the mean squares of batches.
        self._means: Doubles = np.zeros((2, 0))

    def add(self, labels: Part, outputs: Part | None, weights: Part | None) -> dict[str, float]:
        rows = labels.sample.astype(np.float64)
        weight = _weight_of_rows(weights, len(rows))
        symbols = _symbols(labels, outputs)
        values: dict[str, float] = {}
        if not np.isfinite(rows).all() or not np.isfinite(weight).all():
            return values
        self._add_columns(rows, weight)
        if symbols is not None:
            values |= self._add_symbols(symbols, weight)
        elif rows.min(initial=0.0) >= 0 and rows.max(initial=0.0) <= 1:
            values[BatchNumber.LABELS_ENTROPY] = self._mean_weight * self._entropy_of_columns()
        values[BatchNumber.LABELS_SEEN] = self._seen
        values[BatchNumber.LABELS_VARIANCE] = self._mean_weight * float(np.mean(self._variances()))
        values[BatchNumber.LABELS_MEAN] = float(rows.mean())
        values[BatchNumber.LABELS_WITHIN] = self._share_within(rows)
        return values

    def _add_columns(self, rows: Doubles, weight: Doubles) -> None:
        sums = np.stack([np.broadcast_to(weight[:, None], rows.shape).sum(0),
                         (weight[:, None] * rows).sum(0),
                         (weight[:, None] * rows**2).sum(0)])  # fmt: skip
        if self._columns.shape != sums.shape:  # the first, or batches of changing shape
            self._columns = np.zeros(sums.shape)
        self._columns += sums
        self._seen += len(rows)
        self._weight += float(weight.sum())

    def _add_symbols(self, symbols: Doubles, weight: Doubles) -> dict[str, float]:
        repeated = np.repeat(weight, symbols.size // len(weight))
        for symbol, each in zip(symbols.ravel().tolist(), repeated.tolist(), strict=True):
            if symbol in self._symbols or len(self._symbols) < MOST_SYMBOLS:
                self._symbols[symbol] = self._symbols.get(symbol, 0.0) + each
        shares = np.array([share for share in self._symbols.values() if share > 0])
        shares /= shares.sum()
        entropy = float(-(shares * np.log(shares)).sum())
        return {
            BatchNumber.LABELS_KINDS: len(self._symbols),
            BatchNumber.LABELS_ENTROPY: self._mean_weight * entropy,
        }

    @property
    def _mean_weight(self) -> float:
        """Keras divides a weighted loss by the number of rows."""
        return self._weight / self._seen if self._seen else 1.0

    def _variances(self) -> Doubles:
        weight, total, squares = self._columns
        mean = total / np.maximum(weight, 1e-30)
        variances: Doubles = np.maximum(squares / np.maximum(weight, 1e-30) - mean**2, 0.0)
        return variances

    def _entropy_of_columns(self) -> float:
        weight, total, _ = self._columns
        share = np.clip(total / np.maximum(weight, 1e-30), 1e-12, 1 - 1e-12)
        each = -(share * np.log(share) + (1 - share) * np.log(1 - share))
        return float(np.mean(each))

    def _share_within(self, rows: Doubles) -> float:
        """How much of the variance of all labels is within single batches. About 1 if batches are
        drawn at random, 0 if each batch has labels of one kind."""
        count = len(rows)
        if count > 1:
            means = np.stack([rows.mean(axis=0), (rows**2).mean(axis=0)])
            if self._means.shape != means.shape:  # the first, or batches of changing shape
                self._means, self._within, self._batches = np.zeros(means.shape), 0.0, 0
            self._means += means
            self._within += float(np.mean(rows.var(axis=0))) * count / (count - 1)
            self._batches += 1
        mean, square = self._means / max(self._batches, 1)
        total = float(np.mean(square - mean**2)) if mean.size else 0.0
        return self._within / self._batches / total if total > 0 else 1.0


def _symbols(labels: Part, outputs: Part | None) -> Doubles | None:
    """The class of each label; None if labels are quantities, or if columns are independent."""
    rows = labels.sample.astype(np.float64)
    if outputs is None or outputs.last < 2:
        return None
    if labels.rank < outputs.rank or labels.last == 1:
        return rows if bool((rows == np.round(rows)).all()) else None
    is_whole = labels.rank == 2 and rows.shape[1] == labels.columns
    if is_whole and rows.min() >= 0 and bool((np.abs(rows.sum(1) - 1) < SUMS_TO_ONE).all()):
        return np.asarray(np.argmax(rows, axis=1), dtype=np.float64)
    return None


def _weight_of_rows(weights: Part | None, count: int) -> Doubles:
    if weights is None or len(weights.sample) < count:
        return np.ones(count)
    return np.asarray(weights.sample[:count].mean(axis=1), dtype=np.float64)


def _range_of(name: str, samples: Sequence[Rows]) -> dict[str, float]:
    """For all elements: the share that is not finite, the smallest, the largest, the deviation."""
    flat = np.concatenate([sample.ravel() for sample in samples]).astype(np.float64)
    finite = flat[np.isfinite(flat)]
    values = {name + BatchNumber.NOT_FINITE: 1 - len(finite) / max(len(flat), 1)}
    if len(finite):
        values[name + BatchNumber.SMALLEST] = float(finite.min())
        values[name + BatchNumber.LARGEST] = float(finite.max())
        values[name + BatchNumber.SPREAD] = float(finite.std())
    return values


def _constant(samples: Sequence[Rows]) -> float:
    """The share of columns that are the same in all rows. 0 if there is only one row."""
    if any(len(sample) < 2 for sample in samples):
        return 0.0
    columns = [np.ptp(sample, axis=0) <= SAME * np.abs(sample).max(axis=0) for sample in samples]
    return float(np.mean(np.concatenate(columns)))


def _broadcast(labels: Part, outputs: Part) -> dict[str, float]:
    """If the shapes are (n,) and (n, 1): losses computed row by row, and losses of each row with
    each. The program's own loss shows which of them it computes."""
    if {labels.rank, outputs.rank} != {1, 2} or {labels.columns, outputs.columns} != {1}:
        return {}
    y, p = labels.sample[:, 0].astype(np.float64), outputs.sample[:, 0].astype(np.float64)
    if len(y) != len(p) or len(y) < 2 or len(y) != labels.rows:
        return {}
    each = np.subtract.outer(y, p)
    return {
        BatchNumber.SQUARES: float(np.mean((y - p) ** 2)),
        BatchNumber.SQUARES_BROADCAST: float(np.mean(each**2)),
        BatchNumber.ABSOLUTE: float(np.mean(np.abs(y - p))),
        BatchNumber.ABSOLUTE_BROADCAST: float(np.mean(np.abs(each))),
    }
