"""The loss grows by orders of magnitude.

What it finds
A training loss that is still a number but ends a hundred times above where it began.

Why it stalls
The updates make the model worse instead of better, and each one more so. The next stop is NaN.

How it is measured
The usual loss of the last third of the logged steps against that of the first step, or the last
epoch's loss against the first one's; both must be positive, and the growth larger than the scatter.
Where the learning rate is outside of its usual range, that finding stands instead of this one.

Example
A recurrent network over 200 steps without clipping: the loss goes from 0.5 to 3000 in one epoch.

What to do
Clip the gradients (clipnorm=1.0), lower the learning rate, scale inputs and targets. In recurrent
networks use LSTM or GRU, or an orthogonal initializer.

Blind spots
Losses that are negative by design, and losses that grow because the task does (reinforcement
learning, curricula): the finding only asks for a look unless the growth is beyond any such cause.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST302"
BUCKET = "numerics"

# Losses of healthy runs wander by less than a factor of ten around their first value.
EXPLODES = 100.0
# No task grows like this.
SURELY = 1e4


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    ends = _first_and_last(learning)
    if ends is None or (learning.not_finite is not None and learning.not_finite.to_the_end):
        return None
    first, last, of_what = ends
    scatter = learning.trend.early_scatter if learning.trend is not None else 0.0
    if last < EXPLODES * first or last < first + 10 * scatter:
        return None
    rate, to = learning.rate, learning.lower_rate
    at_rate = f" at a learning rate of {rate:.3g}" if rate is not None else ""
    optimizer = learning.settings.optimizer or "SGD"
    before = f"learning_rate={rate:.3g}" if rate is not None else ""
    lower = f"learning_rate={to:.3g}, " if to is not None else ""
    return Finding(
        severity="act" if last >= SURELY * first else "consider",
        title=f"The loss explodes from {first:.3g} to {last:.3g}",
        explanation=(
            f"Over {of_what} the loss grew {last / first:.3g}-fold{at_rate}, and it did not come "
            "back. The updates make the model worse; it will be NaN soon."
        ),
        change=Change(
            "Clip the gradients; if the loss still grows, lower the learning rate and "
            "scale inputs and targets to about 1.",
            before=f"optimizer = keras.optimizers.{optimizer}({before})",
            after=f"optimizer = keras.optimizers.{optimizer}({lower}clipnorm=1.0)",
            turns=turned_to(to),
        ),
        confidence=0.9,
    )


def _first_and_last(learning: LearningSignals) -> tuple[float, float, str] | None:
    first, last = learning.first_loss, learning.last_loss
    of_what = f"{len(learning.steps)} logged steps"
    if first is None and len(learning.epoch_losses) > 1:
        first = float(learning.epoch_losses[0])
        of_what = f"{len(learning.epoch_losses)} epochs"
    if first is None or last is None or not np.isfinite(first) or first <= 0:
        return None
    return first, last, of_what
