"""Does a series move, or does it only scatter?"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.columns import median
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Float64s

# Fewer values say nothing about scatter.
LEAST_VALUES = 9
# Turns a median absolute deviation of normal scatter into its standard deviation.
MAD_TO_DEVIATION = 1.4826
# The error of a middle mean is that of a mean times this, at most: the factor of a median.
MIDDLE_ERROR = 1.2533


@dataclass(frozen=True)
class Trend:
    """The first third compared with the last, and how much they could differ by chance alone."""

    first: float
    early: float  # typical value in the first third
    late: float  # typical value in the last third
    scatter: float  # standard deviation of one value around its neighbors
    early_scatter: float
    late_scatter: float
    error: float  # standard error of early - late
    turning: float  # correlation of each deviation with the next: -1 for up, down, up, down …
    count: int

    @property
    def fall(self) -> float:
        return self.early - self.late


def trend_of(values: Float64s, rounding: Float64s | None = None) -> Trend | None:
    """None for series too short to have a trend. `rounding` is how far each value may be off."""
    if len(values) < LEAST_VALUES:
        return None
    third = len(values) // 3
    uncertain = float(median(rounding)) if rounding is not None else 0.0
    scatter = max(scatter_of(values), uncertain)
    return Trend(
        first=float(values[0]),
        early=middle_mean(values[:third]),
        late=middle_mean(values[-third:]),
        scatter=scatter,
        early_scatter=max(scatter_of(values[:third]), uncertain),
        late_scatter=max(scatter_of(values[-third:]), uncertain),
        error=MIDDLE_ERROR * scatter * float(np.sqrt(2 / third)),
        turning=_turning(values),
        count=len(values),
    )


def middle_mean(values: Float64s) -> float:
    """The mean of the middle half: no spike moves it, and two alternating levels average out."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def scatter_of(values: Float64s) -> float:
    """From differences of neighbors, so that a trend hardly counts as scatter."""
    return float(MAD_TO_DEVIATION * median(np.abs(np.diff(values))) / np.sqrt(2))


def _turning(values: Float64s) -> float:
    """Lag-one correlation of ranks around a straight line; with ranks, no spike decides."""
    middle = (len(values) - 1) / 2
    ranks, at = values.argsort().argsort() - middle, np.arange(len(values)) - middle
    rest = ranks - at * (at @ ranks) / (at @ at)
    power = float(np.sum(rest**2))
    return float(np.sum(rest[1:] * rest[:-1])) / power if power > 0 else 0.0
