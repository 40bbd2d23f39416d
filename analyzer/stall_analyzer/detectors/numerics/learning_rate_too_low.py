"""The learning rate is so low that the loss does not move.

What it finds
A learning rate far below the usual range of its optimizer, in a run whose loss moves by less than
its own scatter.

Why it stalls
Every step runs in full and changes the weights by next to nothing: at 1e-8, Adam needs ten million
steps to move a weight by 0.1.

How it is measured
The highest rate that the run can have used: of the stored optimizer, of its schedule and of what
was logged at the end of each epoch. A run that is still warming up is therefore not meant. The loss
counts as still when the epochs differ by less than 1 % and no trend stands out of the scatter of
the steps. A loss that three epochs on is still at or above the cost of a constant answer leaves no
doubt. A capture measures the updates themselves: below a millionth of the weight in every
layer, nothing moves.

Example
Adam at 1e-8 on five classes: the loss is 1.74 in each of three epochs.

What to do
Start at the optimizer's default (1e-3 for Adam, 1e-2 for SGD) and change it by factors of 3. A rate
of exactly 0 is often a schedule whose number of steps is too small.

Blind spots
Optimizers we have no range for, schedules of one's own, models whose settings were not stored.
"""

from __future__ import annotations

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.baseline import baseline_of, course_of, is_never_below
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.learning_rates import effective_rate, is_above, usual_rates
from stall_analyzer.signals.signals import Signals

ID = "ST304"
BUCKET = "numerics"

# A tenth of the lowest usual rate is worth a question; a hundredth cannot be meant.
LOW = 0.1
ABSURD = 0.01
# Less than this, over all the epochs, is no learning in any first epoch.
STILL = 0.01
# Of the weight's own length: a million such updates would double it.
STILL_RATIO = 1e-6
LEAST_MEASURED = 10


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    settings, rate, usual = learning.settings, learning.highest_rate, usual_rates(learning.settings)
    still = _weights_stand_still(signals)
    if rate is None or usual is None or not (still or learning.is_flat(STILL)):
        return None
    effective = effective_rate(settings, rate)
    if is_above(effective, LOW * usual.low):
        return None
    absurd = not is_above(effective, ABSURD * usual.low) or _learned_nothing(learning)
    epochs = len(learning.epoch_losses)
    where = f"in {epochs} epochs" if epochs > 1 else "in the first epoch"
    last = learning.last_loss
    level = f" from about {last:.3g}" if last is not None else ""
    return Finding(
        severity="act" if absurd else "consider",
        title=(
            f"The {'weights stand' if still else 'loss stands'} still: "
            f"rate {rate:.3g} is too low for {settings.optimizer}"
        ),
        explanation=(
            f"{settings.optimizer} is usually run between {usual.low:.0e} and {usual.high:.3g}. "
            + (
                f"At {rate:.3g} each update changes the weights by {still:.1e} of themselves."
                if still
                else f"At {rate:.3g} the loss did not move{level} {where}, beyond its own scatter."
            )
        ),
        change=Change(
            f"Begin with a learning rate of {usual.start:.3g} and change it by factors of 3.",
            before=f"optimizer = keras.optimizers.{settings.optimizer}(learning_rate={rate:.3g})",
            after=f"optimizer = keras.optimizers.{settings.optimizer}"
            f"(learning_rate={usual.start:.3g})",
            turns=turned_to(usual.start),
        ),
        confidence=0.95 if absurd else 0.7,
    )


def _learned_nothing(learning: LearningSignals) -> bool:
    """Whether the loss has never been below what a constant answer costs."""
    baseline, course = baseline_of(learning), course_of(learning)
    return (
        baseline is not None and course is not None and is_never_below(learning, baseline, course)
    )


def _weights_stand_still(signals: Signals) -> float | None:
    """By how much an update changes the layer that it changes most, where that is nothing."""
    updates = signals.layers.updates
    if updates is None or len(updates) < LEAST_MEASURED:
        return None
    ratios = [ratio for layer in updates.layers if (ratio := updates.usual(layer)) is not None]
    return max(ratios) if ratios and 0 < max(ratios) < STILL_RATIO else None
