"""The learning rate is so low that the loss does not move.

What it finds
A learning rate far below the usual range of its optimizer, in a run whose loss moves by less than
its own noise. Also a rate that a schedule or a callback reduced to almost nothing in the first half
of the epochs (or of the steps, if a capture measured the rate), in a run whose loss has not moved
since.

Why it stalls
Every step runs in full but hardly changes the weights: at 1e-8, Adam needs ten million steps to
move a weight by 0.1.

How it is measured
The highest rate that the run can have used is known from the stored optimizer, its schedule and
what was logged at the end of each epoch; so a run that is still warming up is not reported. The
loss counts as not moving if the epochs differ by less than 1% and no trend stands out from the
noise of the steps. A loss that is still at or above the cost of a constant answer after three
epochs leaves no doubt. A capture measures the updates themselves: if they are below a millionth of
the weights in every layer, nothing moves. A rate counts as reduced to almost nothing if it stays
below a thousandth of its maximum for at least three epochs or six measured steps, and the loss has
not already halved.

Example
Adam at 1e-8 on five classes: the loss is 1.74 in each of three epochs.

What to do
Start at the optimizer's default (1e-3 for Adam, 1e-2 for SGD) and change it by factors of 3. A rate
of exactly 0 often comes from a schedule with too few steps.

Blind spots
Optimizers without a known range, custom schedules, and models whose settings were not stored are
not judged.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.baseline import baseline_of, course_of, is_never_below
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.learning_rates import effective_rate, is_above, usual_rates
from stall_analyzer.signals.numerics.trend import middle_mean
from stall_analyzer.signals.signals import Signals

ID = "ST304"
BUCKET = "numerics"

# A tenth of the lowest usual rate is worth a question; a hundredth cannot be intended.
LOW = 0.1
ABSURD = 0.01
# A loss that moves by less than this over all epochs has not learned anything.
STILL = 0.01
# Relative to the weight's norm: a million such updates would double it.
STILL_RATIO = 1e-6
LEAST_MEASURED = 10
# A rate is gone when it stays below this share of the highest rate logged, for at least this many
# epochs, in which the loss moves by no more than this.
GONE = 1e-3
LEAST_SINCE = 3
LEAST_STEPS_SINCE = 6  # that were measured, if the rate was gone within an epoch
STILL_SINCE = 0.02  # dropout alone moves it a little
HALF = 0.5


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    settings, rate, usual = learning.settings, learning.highest_rate, usual_rates(learning.settings)
    still = _weights_stand_still(signals)
    gone = _gone_at(learning)
    if gone is not None:
        since = f"epoch {gone + 1}"
        return _taken_away(learning.epoch_losses, learning.learning_rates[gone:], since)
    gone = _gone_within_epochs(learning)
    if gone is not None:
        since = f"step {learning.captured_rate_steps[gone]}"
        return _taken_away(learning.steps.value, learning.captured_rates[gone:], since)
    if rate is None or usual is None or not (still or learning.is_flat(STILL)):
        return None
    effective = effective_rate(settings, rate)
    if is_above(effective, LOW * usual.low):
        return None
    absurd = not is_above(effective, ABSURD * usual.low) or _learned_nothing(learning)
    epochs = len(learning.epoch_losses)
    where = f"over {epochs} epochs" if epochs > 1 else "in the first epoch"
    last = learning.last_loss
    level = f"stayed at about {last:.3g}" if last is not None else "did not move"
    return Finding(
        severity="act" if absurd else "consider",
        title=(
            f"The {'weights hardly move' if still else 'loss hardly moves'}: "
            f"a rate of {rate:.3g} is too low for {settings.optimizer}"
        ),
        explanation=(
            f"Usual rates for {settings.optimizer} are {usual.low:.0e} to {usual.high:.3g}. "
            + (
                f"At {rate:.3g}, each update changes the weights by only {still:.1e} of their size."
                if still
                else f"At {rate:.3g}, the loss {level} {where}, apart from noise."
            )
        ),
        change=Change(
            f"Start with a learning rate of {usual.start:.3g} and change it by factors of 3.",
            before=f"optimizer = keras.optimizers.{settings.optimizer}(learning_rate={rate:.3g})",
            after=f"optimizer = keras.optimizers.{settings.optimizer}"
            f"(learning_rate={usual.start:.3g})",
            turns=turned_to(usual.start),
        ),
        confidence=0.95 if absurd else 0.7,
    )


def _gone_at(learning: LearningSignals) -> int | None:
    """The first epoch that ended with a rate of almost nothing, if the loss has not moved since and
    had not fallen to half: the schedule was too fast, and this is not the end of training."""
    epochs = min(len(learning.learning_rates), len(learning.epoch_losses))
    rates, losses = learning.learning_rates[:epochs], learning.epoch_losses[:epochs]
    useful = np.flatnonzero(rates > GONE * rates.max(initial=0.0))
    at = int(useful[-1]) + 1 if len(useful) else 0
    since = losses[at + 1 :]
    if at >= epochs / 2 or len(since) < LEAST_SINCE or not np.isfinite(losses).all():
        return None
    is_still = np.ptp(since) <= STILL_SINCE * abs(since[-1])
    return at if is_still and losses[-1] > HALF * losses[0] > 0 else None


def _gone_within_epochs(learning: LearningSignals) -> int | None:
    """The same by single steps: which of the captured rates was the first of almost nothing."""
    rates, rate_steps, losses = (
        learning.captured_rates,
        learning.captured_rate_steps,
        learning.steps,
    )
    useful = np.flatnonzero(rates > GONE * rates.max(initial=0.0))
    if len(useful) in (0, len(rates)) or not np.isfinite(losses.value).all():
        return None
    gone = int(useful[-1]) + 1
    since = losses.value[losses.step > rate_steps[gone]]
    if rate_steps[gone] >= rate_steps[-1] / 2 or len(since) < LEAST_STEPS_SINCE:
        return None
    before, after = (middle_mean(half) for half in np.array_split(since, 2))
    is_still = abs(after - before) <= STILL_SINCE * abs(after)
    return gone if is_still and after > HALF * losses.value[0] > 0 else None


def _taken_away(losses: Float64s, rates: Float64s, since: str) -> Finding:
    """`rates` are those since then."""
    at_most = "" if (rates == rates[0]).all() else "at most "
    return Finding(
        severity="act",
        title=(
            f"The learning rate has been {at_most}{rates.max():.3g} since {since}: "
            "nothing is learned"
        ),
        explanation=(
            f"A schedule or a callback lowered the rate, and since then the loss has stayed at "
            f"{losses[-1]:.3g}; it began at {losses[0]:.3g}. Usual reasons: a schedule's "
            "decay_steps counts batches but was set to a number of epochs, or ReduceLROnPlateau "
            'uses mode="min" for a metric that should rise.'
        ),
        change=Change(
            "Give the schedule the correct number of batches, or set the right mode on the "
            "callback.",
            before="keras.optimizers.schedules.CosineDecay(1e-3, decay_steps=epochs)",
            after="keras.optimizers.schedules.CosineDecay(\n"
            "    1e-3, decay_steps=epochs * steps_per_epoch\n"
            ")",
        ),
        confidence=0.9,
    )


def _learned_nothing(learning: LearningSignals) -> bool:
    """Whether the loss has never been below the cost of a constant answer."""
    baseline, course = baseline_of(learning), course_of(learning)
    return (
        baseline is not None and course is not None and is_never_below(learning, baseline, course)
    )


def _weights_stand_still(signals: Signals) -> float | None:
    """How much an update changes the layer that it changes most, where that is almost nothing."""
    updates = signals.layers.updates
    if updates is None or len(updates) < LEAST_MEASURED:
        return None
    ratios = [ratio for layer in updates.layers if (ratio := updates.usual(layer)) is not None]
    return max(ratios) if ratios and 0 < max(ratios) < STILL_RATIO else None
