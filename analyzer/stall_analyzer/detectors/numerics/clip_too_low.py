"""Gradients are clipped so much that the weights cannot move.

What it finds
A clipnorm, global_clipnorm or clipvalue that, multiplied by the learning rate and the number of
steps, comes to less than a hundredth of a weight's usual size.

Why it stalls
Clipping is meant to cut off rare peaks. A limit below the usual size of the gradients cuts every
step: SGD then moves each weight by at most rate × clip, no matter how large a step the loss calls
for.

How it is measured
From the optimizer in the stored model. SGD steps by rate × gradient, and momentum accumulates
earlier steps. Adam and similar optimizers divide the gradient by its own size, so clipping has no
effect until gradients are smaller than epsilon; RMSprop adds epsilon under the square root, and
Adagrad starts with an accumulator of 0.1. The total distance that the run's steps could move a
weight is compared with a weight's usual size. The finding is more than a note only where the loss
does not move.

Example
SGD(0.01, clipnorm=1e-4): each step moves a layer by a millionth, and 228 steps move it by 0.0002.
The loss is 2.472 in each of four epochs.

What to do
Clip at about the norm that gradients usually have, typically 1; or do not clip at all.

Blind spots
Models stored by Keras 2 do not include the optimizer. Clipping in a custom loop is not stored
either.
"""

from __future__ import annotations

import math

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.model_settings import ModelSettings
from stall_analyzer.signals.signals import Signals

ID = "ST324"
BUCKET = "numerics"

# A kernel has a norm of 1 or more, and one weight is about 0.1: no more than a hundredth of these.
REACHES_NOTHING = {"clipnorm": 0.01, "global_clipnorm": 0.01, "clipvalue": 0.001}
# In the order in which Keras checks them: the first one counts.
ORDER = ("clipnorm", "global_clipnorm", "clipvalue")
# A gradient g moves a weight by at most rate × g / epsilon. Optimizers not named here do not depend
# on it (Lion uses only the sign), or not in a predictable way.
BY_EPSILON = frozenset({"Adam", "AdamW", "Nadam", "Adamax"})
EPSILON = 1e-7
ACCUMULATOR = 0.1
# Where the number of steps is not known: as many as a long first epoch has.
MANY_STEPS = 10_000
STILL = 0.005


def check(signals: Signals) -> Finding | None:
    learning, settings = signals.learning, signals.learning.settings
    clip, rate = _clip(settings), learning.highest_rate
    if clip is None or rate is None:
        return None
    name, value = clip
    step = _longest_step(settings, rate, value)
    steps = learning.step_count or MANY_STEPS
    if step is None or step * steps >= REACHES_NOTHING[name]:
        return None
    still = _stands_still(learning)
    if not still and len(learning.epoch_losses):
        return None  # the loss moves, so something does
    return Finding(
        severity="act" if still else "note",
        title=f"{name}={value:.3g} limits updates to {step:.1e}: the weights cannot move",
        explanation=(
            f"At a learning rate of {rate:.3g}, {settings.optimizer} changes "
            f"{'a weight' if name == 'clipvalue' else 'all weights of a layer together'} by at "
            f"most {step:.1e} in a step, and by {step * steps:.1e} in {steps:,} steps."
            + (f" The loss stays at {learning.epoch_losses[-1]:.4g}." if still else "")
        ),
        change=Change(
            "Clip only rare peaks, or do not clip at all.",
            before=f"keras.optimizers.{settings.optimizer}({rate:.3g}, {name}={value:.3g})",
            after=f"keras.optimizers.{settings.optimizer}({rate:.3g}, {name}=1.0)",
        ),
        confidence=0.95 if still else 0.6,
    )


def _clip(settings: ModelSettings) -> tuple[str, float] | None:
    found = [(name, settings.clips[name]) for name in ORDER if settings.clips.get(name, 0) > 0]
    return found[0] if found else None


def _longest_step(settings: ModelSettings, rate: float, clip: float) -> float | None:
    """The most that a step can move; None where it does not depend on the gradient's size."""
    if settings.optimizer == "SGD":
        return rate * clip / (1 - settings.momentum) if settings.momentum < 1 else None
    if settings.optimizer == "Adagrad":
        return rate * clip / math.sqrt(ACCUMULATOR)
    if settings.optimizer == "RMSprop":
        return rate * min(1.0, clip / math.sqrt(EPSILON))
    return rate * min(1.0, clip / EPSILON) if settings.optimizer in BY_EPSILON else None


def _stands_still(learning: LearningSignals) -> bool:
    return bool(len(learning.epoch_losses)) and learning.is_flat(STILL)
