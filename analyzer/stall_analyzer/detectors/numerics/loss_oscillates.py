"""The loss jumps up and down without getting lower.

What it finds
A loss that has not fallen and either alternates between high and low from step to step, or is ten
times as noisy at the end as at the beginning.

Why it stalls
The steps are larger than the valley is wide: each one lands on the other side.

How it is measured
From the loss of each step. Ordinary noise differs between batches without a pattern; jumping across
a valley makes high and low losses alternate. The correlation between the rank of each step's loss
and that of the next is near 0 for noise and near -1 for jumps.

Example
Losses of 0.9, 3.1, 0.8, 3.3, 0.9 … at a learning rate of 1.5.

What to do
Lower the learning rate; if the batches are small, make them larger.

Blind spots
Data that itself alternates, such as batches taken in turn from two sources, looks the same as long
as the loss does not fall.
"""

from __future__ import annotations

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.trend import Trend
from stall_analyzer.signals.signals import Signals

ID = "ST306"
BUCKET = "numerics"

# Independent scatter over 30 steps has a correlation within 0.4 of 0 in all but one of 30 cases.
LEAST_STEPS = 30
ALTERNATES = -0.6
# Smaller jumps do no harm.
LEAST_JUMP = 0.05
# In shorter epochs the same batches come around again, and some are harder than others.
LEAST_STEPS_PER_EPOCH = 10
NOISIER = 10.0


def check(signals: Signals) -> Finding | None:
    learning, trend = signals.learning, signals.learning.trend
    if trend is None or trend.count < LEAST_STEPS or learning.not_finite is not None:
        return None
    if (learning.steps_per_epoch or 0) < LEAST_STEPS_PER_EPOCH:
        return None
    what = _what_it_does(trend)
    if not what:
        return None
    rate, to, optimizer = learning.rate, learning.lower_rate, learning.settings.optimizer
    known = rate is not None and optimizer is not None
    return Finding(
        severity="consider",
        title="The loss jumps up and down without getting lower",
        explanation=(
            f"The loss was about {trend.early:.3g} in the first third of the {trend.count} steps "
            f"and is about {trend.late:.3g} in the last third. {what}"
        ),
        change=Change(
            "Lower the learning rate"
            + (f" from {rate:.3g} to {to:.3g}" if rate is not None else "")
            + "; if the batches are small, make them larger as well.",
            before=f"keras.optimizers.{optimizer}(learning_rate={rate:.3g})" if known else "",
            after=f"keras.optimizers.{optimizer}(learning_rate={to:.3g})" if known else "",
            turns=turned_to(to),
        ),
        confidence=0.6,
    )


def _what_it_does(trend: Trend) -> str:
    if trend.late < trend.early - 2 * trend.error:
        return ""
    if trend.turning <= ALTERNATES and trend.scatter >= LEAST_JUMP * abs(trend.late):
        return "Each high loss is followed by a low one: the steps jump across the minimum."
    if (
        trend.late_scatter >= NOISIER * trend.early_scatter
        and trend.late_scatter >= LEAST_JUMP * abs(trend.late)
        and trend.late > trend.early
    ):
        return (
            f"It varies by {trend.late_scatter:.3g} from step to step, compared with "
            f"{trend.early_scatter:.3g} at first."
        )
    return ""
