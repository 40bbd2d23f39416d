"""A model that had learned, or whose loss shot up, and that now only guesses.

A part of ST305, which says more about it.
"""

from __future__ import annotations

import math

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.learning import LearningSignals

# How close to ln(K) counts as a guess.
NEAR_GUESS = 0.02
# An accuracy this far above chance has learned something.
ABOVE_CHANCE = 0.05
# What the model had learned before, or how far its loss shot up; and for how many steps the loss
# then stays at the guess. A loss that only passes through is there for a few steps.
HAD_LEARNED = 0.9
LEARNED_STEPS = 5
# With small batches, the losses of single steps scatter widely: had they been at a guess, their
# median would be this many standard errors below it about once in a thousand runs.
STANDARD_ERRORS = 3.0
ERROR_OF_MEDIAN = 1.25  # of that of a mean
THROWN = 3.0
BROKEN_LEAST = 10
THROWN_LEAST = 50


def broken_at(learning: LearningSignals) -> int | None:
    """The index of the step from which on the model only guesses, although it did not before."""
    guess, losses = learning.settings.guess_loss, learning.steps.value
    if guess is None or not np.isfinite(losses).all() or _tells_apart(learning):
        return None
    elsewhere = np.flatnonzero(np.abs(losses - guess) > NEAR_GUESS * guess)
    if len(elsewhere) == 0:
        return None
    begin = int(elsewhere[-1]) + 1
    before, stays = losses[:begin], len(losses) - begin
    had_learned = begin >= LEARNED_STEPS and _had_learned(before, guess)
    thrown = before.max() > THROWN * guess
    long_enough = BROKEN_LEAST if had_learned else THROWN_LEAST
    return begin if (had_learned or thrown) and stays >= long_enough else None


def _had_learned(losses: Float64s, guess: float) -> bool:
    # A loss that falls differs little between neighbors, one that scatters does.
    scatter = float(np.std(np.diff(losses))) / math.sqrt(2)
    error = ERROR_OF_MEDIAN * scatter / math.sqrt(LEARNED_STEPS)
    return _usual(losses) < min(HAD_LEARNED * guess, guess - STANDARD_ERRORS * error)


def _usual(losses: Float64s) -> float:
    """The typical loss of the last few steps, whatever a single one may be."""
    return float(median(losses[-LEARNED_STEPS:]))


def _tells_apart(learning: LearningSignals) -> bool:
    """Whether an accuracy was logged that is above chance."""
    accuracies, classes = learning.accuracies, learning.settings.classes
    return bool(len(accuracies) > 1 and classes and accuracies[-1] >= 1 / classes + ABOVE_CHANCE)


def broke_down(learning: LearningSignals, begin: int) -> Finding:
    steps, settings, lower = learning.steps, learning.settings, learning.lower_rate
    classes, rate = settings.classes, f"{lower:.3g}" if lower is not None else "learning_rate / 10"
    before, since = steps.value[:begin], steps.value[begin:]
    worst, reached, guess = float(before.max()), _usual(before), float(median(since))
    came = f"The loss went from {reached:.3g} to {guess:.4g}"
    if reached >= guess:
        came = f"After a peak of {worst:.3g}, the loss went to {guess:.4g}"
    return Finding(
        severity="act",
        title=f"The model broke down at step {steps.step[begin]} and has only guessed since",
        explanation=(
            f"{came} and has stayed there for {len(since)} steps. That is ln({classes}), the cost "
            f"of giving each of {classes} classes the same probability: the outputs no longer "
            f"depend on the inputs. Usual reasons: one update that was far too large and left only "
            f"dead units, or a NaN in the inputs, which relu can turn into 0 so that the loss does "
            f"not show it."
        ),
        change=Change(
            "Look for NaN and unusually large values in the inputs, and scale them; then lower "
            "the learning rate or clip the gradients.",
            before="model.fit(x, y)",
            after="assert np.isfinite(x).all()\n"
            f"optimizer = keras.optimizers.{settings.optimizer or 'Adam'}({rate}, clipnorm=1.0)\n"
            "model.compile(optimizer, loss)\n"
            "model.fit((x - x.mean(0)) / x.std(0), y)",
            turns=turned_to(lower),
        ),
        confidence=0.85,
    )
