"""The first loss is far above the loss of a guess: the inputs are probably not scaled.

What it finds
A classifier that is confidently wrong before its first update: its first loss is more than ten
times ln(K), the cost of guessing among K classes. Also, only as a note, a regression model whose
loss is above ten thousand and does not halve in three epochs: its targets are probably not scaled.

Why it stalls
Fresh weights expect inputs of about 1. Pixels from 0 to 255 produce outputs in the hundreds, and
the first part of training is spent undoing that; it may even kill the relu units.

How it is measured
The loss of the first step, which no update has touched, compared with ln(K); the number of classes
and the way the loss is averaged come from the stored model. Models that scale their input
(Rescaling, Normalization, BatchNormalization) are left out. What the model's regularizers add to
the first loss is subtracted; where that cannot be computed, the finding is a note. Class weights
apply only in training, so a training loss that stays at several times the validation loss is taken
to be weighted.

Example
Five classes and raw pixels: the first loss is 61, while a guess would give 1.6.

What to do
Scale the inputs: divide pixels by 255, or put a Normalization layer first.

Blind spots
Needs the loss of individual steps. Without validation, large class weights or sample weights look
the same, and so does a model whose weights were loaded from another task.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST309"
BUCKET = "numerics"

# Usual initializers give outputs of about 1, and a first loss of at most two or three times ln(K).
FAR_ABOVE = 10.0
# Dropout and the change within an epoch account for a factor of two.
WEIGHTED = 4.0
# The square of a hundred: targets of that size are not scaled.
HUGE = 1e4
LEAST_EPOCHS = 3
HALF = 0.5


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    settings, first, guess = learning.settings, learning.first_loss, learning.settings.guess_loss
    if guess is None:
        return _unscaled_targets(learning)
    if first is None or settings.scales_input or _looks_weighted(learning):
        return None
    penalty = signals.stored_layers.penalty
    if not first - (penalty or 0.0) > FAR_ABOVE * guess:
        return None
    unsure = " (Large class weights have the same effect.)"
    if penalty is None:
        unsure = " But the model's regularizers or large class weights may also add that much."
    return Finding(
        severity="consider" if penalty is not None else "note",
        title=f"The first loss is {first:.3g}, while a guess would give {guess:.2g}",
        explanation=(
            f"Before any update the model was {first / guess:.0f} times as wrong as one that "
            f"gives each of its {settings.classes} classes the same probability. That happens "
            f"when inputs are much larger than 1, such as pixels from 0 to 255.{unsure}"
        ),
        change=Change(
            "Scale the inputs to about 1 before the first layer.",
            before="model = keras.Sequential([keras.Input(shape), ...])",
            after="model = keras.Sequential(\n"
            "    [keras.Input(shape), keras.layers.Rescaling(1 / 255), ...]\n"
            ")",
        ),
        confidence=0.7 if penalty is not None else 0.4,
    )


def _unscaled_targets(learning: LearningSignals) -> Finding | None:
    losses = learning.epoch_losses
    if len(losses) < LEAST_EPOCHS or not HUGE < HALF * losses[0] < losses[-1] < np.inf:
        return None
    return Finding(
        severity="note",
        title=f"The loss is {losses[-1]:.3g}: the targets are probably not scaled",
        explanation=(
            f"It began at {losses[0]:.3g} and has not halved in {len(losses)} epochs. "
            "Weights and outputs begin at about 1, and an optimizer moves them by about the "
            "learning rate in each step: large targets are many steps away. Next to such a loss, "
            "the losses of other outputs hardly count."
        ),
        change=Change(
            "Scale the targets to about 1 for training, and scale the predictions back.",
            before="model.fit(x, y)",
            after="mean, scale = y.mean(), y.std()\nmodel.fit(x, (y - mean) / scale)",
        ),
        confidence=0.5,
    )


def _looks_weighted(learning: LearningSignals) -> bool:
    """Class weights count in training, but not in validation.

    The first epoch's mean includes the first steps; in later epochs, a healthy model's validation
    loss is not far better than its training loss.
    """
    later = min(len(learning.epoch_losses), len(learning.validation_losses))
    trained, validated = learning.epoch_losses[1:later], learning.validation_losses[1:later]
    return len(trained) > 0 and bool((trained > WEIGHTED * np.abs(validated)).all())
