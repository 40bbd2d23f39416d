"""Does the loss agree that nothing was learned?

What a stored model looks like is only a suspicion, and many models that look odd learn well. This
is the one place that tells checks of the model whether to report more than a note.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.signals.numerics.learning import LearningSignals

# Fewer steps, in fewer epochs, are too early to say.
LEAST_STEPS = 100
LEAST_EPOCHS = 2
ENOUGH_EPOCHS = 3  # however few steps they have
# This far below the loss of a guess, or above its accuracy, something was learned.
BELOW_GUESS = 0.02
ABOVE_CHANCE = 0.05
# A loss that moves by less than this over all epochs does not move.
STILL = 0.005
# A difference this small is only rounding: no update changes anything. float32 keeps seven digits
# of a mean.
SAME = 1e-5
# How far the first step may be from the others by chance, in standard deviations.
SCATTERS = 3.0
HALF = 0.5
# A rate that was lowered to this share of its maximum stops the loss as well.
LOWERED = 0.1


def has_learned_nothing(learning: LearningSignals) -> bool:
    """Whether the loss is certainly at a guess, has never moved, or has stopped for good.

    A loss that is not a number has other reasons and does not count.
    """
    if not _is_late_enough(learning) or _accuracy_says_otherwise(learning):
        return False
    if not np.isfinite(learning.epoch_losses).all():
        return False
    guess = learning.settings.guess_loss
    if guess is None:
        return is_at_chance(learning) or stopped_for_good(learning) or _never_moved(learning)
    if learning.epoch_losses[-1] < (1 - BELOW_GUESS) * guess:
        return False
    # Class weights raise a healthy loss above the guess, so it must also not move.
    return is_at_chance(learning) or learning.is_flat(STILL)


def is_at_chance(learning: LearningSignals) -> bool:
    """Whether the accuracy never rose above that of a guess."""
    accuracies, classes = learning.accuracies, _classes(learning)
    if len(accuracies) < ENOUGH_EPOCHS or classes is None:
        return False
    return bool(accuracies.max() < 1 / classes + ABOVE_CHANCE)


def stopped_for_good(learning: LearningSignals) -> bool:
    """Whether the later epochs have the same loss to the last digits, without a lowered rate.

    A model that has learned all it can also stops, but late, and far below its start.
    """
    epochs, rates = learning.epoch_losses, learning.learning_rates
    if len(epochs) < ENOUGH_EPOCHS or epochs[-1] == 0 or has_learned(learning):
        return False
    if len(rates) and rates[-1] <= LOWERED * rates.max():
        return False
    last = epochs[-max(ENOUGH_EPOCHS, len(epochs) // 2) :]
    return bool(np.ptp(last) <= SAME * abs(epochs[-1]))


def has_learned(learning: LearningSignals) -> bool:
    """Whether its loss has fallen to half, which never happens by chance."""
    first, last = learning.first_loss, learning.last_loss
    if first is None and len(learning.epoch_losses) > 1:
        first = float(learning.epoch_losses[0])
    return first is not None and last is not None and 0 < last < HALF * first


def _never_moved(learning: LearningSignals) -> bool:
    """Not even in its first steps: many models learn all they can within one epoch."""
    trend, first = learning.trend, learning.first_loss
    if trend is None or first is None or trend.late == 0 or not learning.is_flat(STILL):
        return False
    return abs(first - trend.late) <= SCATTERS * trend.scatter + STILL * abs(trend.late)


def _is_late_enough(learning: LearningSignals) -> bool:
    epochs, steps = len(learning.epoch_losses), learning.step_count
    if epochs < LEAST_EPOCHS:
        return False
    return epochs >= ENOUGH_EPOCHS or (steps is not None and steps >= LEAST_STEPS)


def _accuracy_says_otherwise(learning: LearningSignals) -> bool:
    """Whether it has risen, or is above that of a guess."""
    accuracies, classes = learning.accuracies, _classes(learning)
    if len(accuracies) == 0:
        return False
    last = accuracies[-2:].max()
    chance = 1 / classes if classes is not None else 1 - ABOVE_CHANCE
    return bool(last - accuracies[0] > ABOVE_CHANCE or last >= chance + ABOVE_CHANCE)


def _classes(learning: LearningSignals) -> int | None:
    """The number of classes, even with a custom or summed loss, if outputs are probabilities."""
    settings, output = learning.settings, learning.settings.output
    if settings.classes is not None or output is None:
        return settings.classes
    if output.activation == "softmax" and output.units and output.units > 1:
        return output.units
    return 2 if output.activation == "sigmoid" and output.units == 1 else None
