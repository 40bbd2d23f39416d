"""Whether Python functions of the pipeline compute while steps run, or sleep.

The trace shows when such a function ran, not what it did: it may work with numpy, which takes a
core from the step, or wait for a server, which takes nothing. Two things reveal the former.

A thread that shares its cores is held up now and then, so its calls never take equally long; calls
that sleep for a given time do. And the more of it ran in the background, the longer steps take.
This is checked only for as long as even quick steps compute: a slow step has more of everything in
the background. Either alone may mislead: waits for a server also vary, and steps vary for many
reasons.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.columns import percentile
from stall_analyzer.model.intervals import Tiling, among, covered_time, time_in, union
from stall_analyzer.model.units import Float64s, Int64s

Spans = tuple[Int64s, Int64s]

LEAST_STEPS = 20
QUICK = 10  # percent
# The spread of the middle half of the calls, divided by their median: at most 0.07 if functions
# slept for a given time, at least 0.15 if they computed on shared cores.
SCATTERS = 0.1
# Slow steps are slow for some other reason.
SLOW = 95  # percent
# Of what a thread that always computes would take: most functions also wait, and steps that scatter
# flatten the line through them.
LEAST_PART = 0.25
# One in twenty sleeping functions seems to slow the steps down that much by chance.
BY_CHANCE = 1.65


def computes_beside(
    tiling: Tiling, steps: Spans, compute: Int64s, calls: Spans, lost_share: float
) -> bool:
    """`lost_share`: how much of its time a step loses while one thread computes in the
    background."""
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
    """How much longer a step computes per time of the calls in the background, and how sure that
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
