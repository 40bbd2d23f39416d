"""Whether Python functions of the pipeline compute while steps run, or sleep.

The trace shows when such a function ran, not what it did: it may work with numpy, which takes a
core from the step, or wait for a server, which takes nothing. Two things give the first away.

A thread that shares its cores is held up now and then, so its calls never take equally long; those
that sleep for a given time do. And steps take the longer, the more of it ran beside them. That is
asked only of the time that even quick steps compute: a slow step has more of everything beside it.

Either alone may mislead: waits for a server differ, too, and steps differ for many reasons.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.columns import percentile
from stall_analyzer.model.intervals import Tiling, among, covered_time, time_in, union
from stall_analyzer.model.units import Float64s, Int64s

Spans = tuple[Int64s, Int64s]

LEAST_STEPS = 20
QUICK = 10  # percent
# The middle half of the calls, over their median: at most 0.07 where functions slept for a given
# time, 0.15 and more where they computed on shared cores.
SCATTERS = 0.1
# Slow steps are slow for some other reason.
SLOW = 95  # percent
# Of what one thread takes that computes all the time: most functions also wait, and steps that
# scatter flatten the line through them.
LEAST_PART = 0.25
# Of sleeping functions, one in twenty seems to slow the steps down that much by chance.
BY_CHANCE = 1.65


def computes_beside(
    tiling: Tiling, steps: Spans, compute: Int64s, calls: Spans, lost_share: float
) -> bool:
    """`lost_share`: what a step loses of the time in which one thread computes beside it."""
    length = calls[1] - calls[0]
    length = length[calls[0] >= steps[0].min(initial=1 << 62)]
    if len(steps[0]) < LEAST_STEPS or len(length) < LEAST_STEPS:
        return False
    low, middle, high = (percentile(length, percent) for percent in (25, 50, 75))
    if high - low < SCATTERS * middle:
        return False
    slope, error = _slowed_down(tiling, steps, compute, calls)
    return slope > max(LEAST_PART * lost_share, BY_CHANCE * error)


def _slowed_down(
    tiling: Tiling, steps: Spans, compute: Int64s, calls: Spans
) -> tuple[float, float]:
    """What the computing of a step takes longer per time of the calls beside it, and how sure that
    is: slope and standard error of a straight line."""
    spent = time_in(tiling, *steps, compute).astype(np.float64)
    begin = _first_compute(tiling, steps[0], compute)
    beside = covered_time(begin, begin + int(percentile(spent, QUICK)), *union(*calls))
    return _slope(beside, np.minimum(spent, percentile(spent, SLOW)))


def _first_compute(tiling: Tiling, begin: Int64s, compute: Int64s) -> Int64s:
    starts = tiling.bounds[:-1][among(tiling.labels, compute)]
    return np.append(starts, tiling.bounds[-1])[np.searchsorted(starts, begin)]


def _slope(x: Float64s, y: Float64s) -> tuple[float, float]:
    x, y = x - x.mean(), y - y.mean()
    spread = float((x * x).sum())
    if spread == 0:
        return 0.0, 0.0
    slope = float((x * y).sum()) / spread
    rest = y - slope * x
    return slope, float(np.sqrt((rest * rest).sum() / (len(x) - 2) / spread))
