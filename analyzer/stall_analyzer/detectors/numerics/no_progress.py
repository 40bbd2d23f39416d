"""The loss stays at the level of a constant guess.

What it finds
A classifier whose loss stays at ln(K), what it costs to give each of K classes the same chance,
with an accuracy that does not rise; or a loss that is the same number in epoch after epoch; or one
that fell back to ln(K) within the epoch and stays there.

Why it stalls
The steps run, and the model does not get better at telling the classes apart. Either the updates do
not reach the weights, or there is nothing in the data to learn.

How it is measured
Number of classes from the stored model; losses from the event files. The last epochs must lie
within 2 % of ln(K) and differ by less than 0.5 %, over at least two epochs and a hundred steps. A
loss that is the same to six digits in three epochs needs no number of classes. A model that broke
down is seen within one epoch: its steps were at least a tenth below ln(K), or three times as high,
and from some step on each of them is within 2 % of it. Where the learning rate or the last layer
explains it, those findings stand instead of this one.

Example
Loss 2.303 in all of three epochs on ten classes, which is ln(10): the labels had been shuffled
without the images.

What to do
Train on one batch of 32 examples. If the loss does not go to 0, the updates do not arrive: look for
frozen layers, dead relu units, vanishing gradients. If it does, the labels do not belong to the
inputs: look at a few of both, as they leave the input pipeline. A model that broke down: look for
NaN in the inputs, scale them, lower the rate or clip gradients.

Blind spots
Regressions: what a constant guess costs there is the variance of the targets, which is not logged.
Classes of unequal size: their constant guess costs less than ln(K).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stall_analyzer.detectors.numerics.rate_turns import turned_to
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.signals import Signals

ID = "ST305"
BUCKET = "numerics"

# Fewer steps or epochs are too early to say.
LEAST_STEPS = 100
LEAST_EPOCHS = 2
LEAST_EPOCHS_UNCOUNTED = 4  # where the number of steps is not known, with an accuracy at hand
# How close to ln(K) counts as a guess, and how little the last epochs may differ: a slow but
# healthy beginning falls by a per cent and more per epoch.
NEAR_GUESS = 0.02
STILL = 0.005
# An accuracy this far above chance has learned something.
ABOVE_CHANCE = 0.05
# After so many epochs at a guess, with an accuracy that says the same, nothing has been learned.
SURE_EPOCHS = 3
# A model that broke down: what it had learned before, or how far its loss was thrown; and for how
# many steps the loss then stays at the guess. A loss that only passes by is there for a few steps.
HAD_LEARNED = 0.9
LEARNED_STEPS = 5
THROWN = 3.0
BROKEN_LEAST = 10
THROWN_LEAST = 50
# The same number to the digits that float32 has, in this many epochs: no update arrives.
SAME = 1e-6
WHAT_WOULD_TELL = (
    "StallCallback measures the gradients and updates of each layer: a run with it says which."
)
LEAST_SAME = 3

ONE_BATCH = Change(
    "Train on a single batch until its loss is near 0. If it gets there, look at the labels "
    "as they leave the input pipeline; if not, look at layers, gradients and loss.",
    before="model.fit(data, epochs=3)",
    after="model.fit(data.take(1).cache().repeat(200))",
)


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    epochs = learning.epoch_losses
    if not np.isfinite(epochs).all():
        return None
    broken_at = _broken_at(learning)
    if broken_at is not None:
        return _broke_down(learning, broken_at)
    if len(epochs) < LEAST_EPOCHS:
        return None
    if learning.settings.frozen:
        return _frozen(learning)
    finding: Finding | None = None
    if _guesses(learning):
        finding = _guessing(learning)
    elif len(epochs) >= LEAST_SAME and epochs[0] != 0 and np.ptp(epochs) <= SAME * abs(epochs[0]):
        finding = _constant(learning)
    if finding is None or signals.layers.gradients is not None:
        return finding
    return replace(finding, explanation=f"{finding.explanation} {WHAT_WOULD_TELL}")


def _guesses(learning: LearningSignals) -> bool:
    guess, classes = learning.settings.guess_loss, learning.settings.classes
    if guess is None or classes is None or not _is_late_enough(learning):
        return False
    last = learning.epoch_losses[-2:]
    if np.abs(last - guess).max() > NEAR_GUESS * guess or np.ptp(last) > STILL * guess:
        return False
    accuracies = learning.accuracies
    return not len(accuracies) or bool(accuracies[-1] < 1 / classes + ABOVE_CHANCE)


def _broken_at(learning: LearningSignals) -> int | None:
    """The entry of the step losses from which on the model only guesses, after it did not."""
    guess, losses = learning.settings.guess_loss, learning.steps.value
    if guess is None or not np.isfinite(losses).all() or _tells_apart(learning):
        return None
    elsewhere = np.flatnonzero(np.abs(losses - guess) > NEAR_GUESS * guess)
    if len(elsewhere) == 0:
        return None
    begin = int(elsewhere[-1]) + 1
    before, stays = losses[:begin], len(losses) - begin
    had_learned = begin >= LEARNED_STEPS and _usual(before) < HAD_LEARNED * guess
    thrown = before.max() > THROWN * guess
    long_enough = BROKEN_LEAST if had_learned else THROWN_LEAST
    return begin if (had_learned or thrown) and stays >= long_enough else None


def _usual(losses: Float64s) -> float:
    """The loss of the last few steps, whatever a single one may be."""
    return float(np.median(losses[-LEARNED_STEPS:]))


def _tells_apart(learning: LearningSignals) -> bool:
    """Whether an accuracy was logged that is above chance."""
    accuracies, classes = learning.accuracies, learning.settings.classes
    return bool(len(accuracies) > 1 and classes and accuracies[-1] >= 1 / classes + ABOVE_CHANCE)


def _broke_down(learning: LearningSignals, begin: int) -> Finding:
    steps, settings, lower = learning.steps, learning.settings, learning.lower_rate
    classes, rate = settings.classes, f"{lower:.3g}" if lower is not None else "learning_rate / 10"
    before, since = steps.value[:begin], steps.value[begin:]
    worst, reached, guess = float(before.max()), _usual(before), float(np.median(since))
    came = f"from {reached:.3g}" if reached < guess else f"after a peak of {worst:.3g}"
    return Finding(
        severity="act",
        title=f"The model broke down at step {steps.step[begin]}: since then it only guesses",
        explanation=(
            f"The loss went {came} to {guess:.4g} and has stayed there for "
            f"{len(since)} steps. That is ln({classes}), the cost of giving each of "
            f"{classes} classes the same chance: the outputs no longer depend on the inputs. "
            "Usual reasons: one update that was far too long and left only dead units, or a NaN in "
            "the inputs, which relu turns into 0 so that the loss does not show it."
        ),
        change=Change(
            "Look for NaN and for values of unusual size in the inputs and scale them; then lower "
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


def _is_late_enough(learning: LearningSignals) -> bool:
    if learning.step_count is not None:
        return learning.step_count >= LEAST_STEPS
    return min(len(learning.epoch_losses), len(learning.accuracies)) >= LEAST_EPOCHS_UNCOUNTED


def _guessing(learning: LearningSignals) -> Finding:
    settings, epochs = learning.settings, learning.epoch_losses
    rate = f" at a learning rate of {learning.rate:.3g}" if learning.rate is not None else ""
    accuracy = (
        f" The accuracy is {learning.accuracies[-1]:.3g}." if len(learning.accuracies) else ""
    )
    sure = len(learning.accuracies) and len(epochs) >= SURE_EPOCHS
    return Finding(
        severity="act" if sure else "consider",
        title=f"The loss stays at {epochs[-1]:.3g}: a guess among {settings.classes} classes",
        explanation=(
            f"After {len(epochs)} epochs{rate} the loss is still ln({settings.classes}), the cost "
            f"of giving each class the same chance.{accuracy} Either the labels do not belong to "
            "the inputs, and then no model can learn them, or the updates do not reach the "
            "weights. The log cannot tell which."
        ),
        change=ONE_BATCH,
        confidence=0.85 if sure else 0.7,
    )


def _constant(learning: LearningSignals) -> Finding:
    epochs = learning.epoch_losses
    return Finding(
        severity="consider",
        title=f"The loss is {epochs[-1]:.6g} in each of {len(epochs)} epochs",
        explanation=(
            "It is the same to six digits, although weights that are updated always move it a "
            "little. The gradient is zero: units that are dead or saturated, an operation without "
            "a gradient, or variables that the optimizer was not given."
        ),
        change=ONE_BATCH,
        confidence=0.7,
    )


def _frozen(learning: LearningSignals) -> Finding:
    epochs = learning.epoch_losses
    return Finding(
        severity="act" if learning.is_flat(STILL) else "consider",
        title="Every layer of the model is frozen",
        explanation=(
            f"All layers with weights have trainable=False. The loss is {epochs[0]:.4g} in the "
            f"first and {epochs[-1]:.4g} in the last of {len(epochs)} epochs: there is nothing to "
            "train."
        ),
        change=Change(
            "Set trainable=True on the layers that are to learn, and compile the model again.",
            before="model.trainable = False",
            after="model.layers[-1].trainable = True\nmodel.compile(...)",
        ),
        confidence=0.95,
    )
