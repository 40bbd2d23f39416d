"""The accuracy falls while the loss falls.

What it finds
A classifier whose loss gets lower from epoch to epoch while its accuracy falls below that of a
guess.

Why it stalls
Training minimizes the loss, and here a small loss means wrong answers. More epochs make the model
worse.

How it is measured
The losses and accuracies of at least three epochs from the event files, and the number of classes
from the last layer. From the first epoch to the last, the loss must fall by more than 5%, and the
accuracy by more than 0.05 and by more than a fifth of its first value. The accuracy must also end
clearly below chance.

Example
A custom loss returns the likelihood instead of its negative: with two classes, the loss goes from
-1.0 to -3.4 while the accuracy falls from 0.22 to 0.07.

What to do
Check the sign of the loss first, then the labels: swapped classes, inverted one-hot labels, or a
metric that uses different labels than the loss.

Blind spots
Accuracies that fall to chance but no lower are not reported, because that may be healthy with
weighted classes or in a discriminator. Models whose last layer does not show the number of classes
are not reported either.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST322"
BUCKET = "numerics"

LEAST_EPOCHS = 3
# What counts as a fall: for the loss, a share of its first value; for the accuracy, a share and an
# amount.
LOSS_FALLS = 0.05
FALLS = 0.05
FALLS_TO = 0.8
# An accuracy may miss chance by a little; this far below it, answers are systematically wrong.
BELOW_CHANCE = 0.8


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    losses, accuracies = learning.epoch_losses, learning.accuracies
    chance = _chance(learning)
    if chance is None or len(accuracies) < LEAST_EPOCHS or len(accuracies) != len(losses):
        return None
    if not _loss_falls(learning) or not _accuracy_falls(learning, chance):
        return None
    return Finding(
        severity="act",
        title=f"The accuracy falls to {accuracies[-1]:.3g} while the loss gets lower",
        explanation=(
            f"Over {len(losses)} epochs the loss went from {losses[0]:.3g} to {losses[-1]:.3g}, "
            f"and the accuracy from {accuracies[0]:.3g} to {accuracies[-1]:.3g}; a guess would "
            f"score {chance:.2g}. The model is being taught the wrong answers: the sign of the "
            f"loss is wrong, or the loss and the accuracy use different labels."
        ),
        change=Change(
            "Flip the sign of the loss if it is a likelihood or a score; otherwise compare the "
            "labels given to the loss with those given to the metric.",
            before="return tf.reduce_mean(log_likelihood)",
            after="return -tf.reduce_mean(log_likelihood)",
        ),
        confidence=0.9,
    )


def _chance(learning: LearningSignals) -> float | None:
    """How often a guess is right, according to the last layer; None where that is not known."""
    output = learning.settings.output
    if output is None or output.units is None:
        return None
    if output.units == 1 and output.activation == "sigmoid":
        return 0.5
    return 1 / output.units if output.units > 1 and output.activation == "softmax" else None


def _loss_falls(learning: LearningSignals) -> bool:
    losses = learning.epoch_losses
    fall = float(losses[0] - losses[-1])
    return bool(np.isfinite(losses).all()) and fall > LOSS_FALLS * abs(float(losses[0]))


def _accuracy_falls(learning: LearningSignals, chance: float) -> bool:
    first, last = float(learning.accuracies[0]), float(learning.accuracies[-1])
    return last < BELOW_CHANCE * chance and last < min(first - FALLS, FALLS_TO * first)
