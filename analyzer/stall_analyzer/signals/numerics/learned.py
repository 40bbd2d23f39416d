"""Does the loss agree that training has come to nothing?

What a stored model looks like is a suspicion, and many models that look odd learn well. This is the
one place that tells lints of the model whether to be loud.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.signals.numerics.learning import LearningSignals

# Fewer steps, in fewer epochs, are too early to say.
LEAST_STEPS = 100
LEAST_EPOCHS = 2
ENOUGH_EPOCHS = 3  # of however few steps
# So far below a guess, or so far above its accuracy, something was learned.
BELOW_GUESS = 0.02
ABOVE_CHANCE = 0.05
# Less than this over all the epochs is no movement.
STILL = 0.005
# Only rounding differs: no update changes anything. float32 keeps seven digits of a mean.
SAME = 1e-5
# How far the first step may lie from the others by chance, in standard deviations.
SCATTERS = 3.0
HALF = 0.5
# A rate that was lowered by so much stops the loss as well.
LOWERED = 0.1


def has_learned_nothing(learning: LearningSignals) -> bool:
    """Surely: at a guess, or standing still from its first epoch or for good.

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
    # Class weights raise a healthy loss above the guess: then it must stand still as well.
    return is_at_chance(learning) or learning.is_flat(STILL)


def is_at_chance(learning: LearningSignals) -> bool:
    """By an accuracy that never rose above that of a guess."""
    accuracies, classes = learning.accuracies, _classes(learning)
    if len(accuracies) < ENOUGH_EPOCHS or classes is None:
        return False
    return bool(accuracies.max() < 1 / classes + ABOVE_CHANCE)


def stopped_for_good(learning: LearningSignals) -> bool:
    """Most epochs have the same loss to the last digits, and no rate was lowered for it.

    A model that has learned all it can comes to rest as well, but late, and far below its start.
    """
    epochs, rates = learning.epoch_losses, learning.learning_rates
    if len(epochs) < ENOUGH_EPOCHS or epochs[-1] == 0 or has_learned(learning):
        return False
    if len(rates) and rates[-1] <= LOWERED * rates.max():
        return False
    last = epochs[-max(ENOUGH_EPOCHS, len(epochs) // 2) :]
    return bool(np.ptp(last) <= SAME * abs(epochs[-1]))


def has_learned(learning: LearningSignals) -> bool:
    """Its loss has fallen to half, which no model comes to by chance."""
    first, last = learning.first_loss, learning.last_loss
    if first is None and len(learning.epoch_losses) > 1:
        first = float(learning.epoch_losses[0])
    return first is not None and last is not None and 0 < last < HALF * first


def _never_moved(learning: LearningSignals) -> bool:
    """Not even in its first steps: many a model has learned all it can within an epoch."""
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
    """It has risen, or is above that of a guess."""
    accuracies, classes = learning.accuracies, _classes(learning)
    if len(accuracies) == 0:
        return False
    last = accuracies[-2:].max()
    chance = 1 / classes if classes is not None else 1 - ABOVE_CHANCE
    return bool(last - accuracies[0] > ABOVE_CHANCE or last >= chance + ABOVE_CHANCE)


def _classes(learning: LearningSignals) -> int | None:
    """Also behind a custom loss or one that is summed, if the outputs are probabilities."""
    settings, output = learning.settings, learning.settings.output
    if settings.classes is not None or output is None:
        return settings.classes
    if output.activation == "softmax" and output.units and output.units > 1:
        return output.units
    return 2 if output.activation == "sigmoid" and output.units == 1 else None
