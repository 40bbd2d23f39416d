"""The loss on the console is not a number.

What it finds
A run whose progress bar shows "loss: nan" at the end, if no event file contains the loss.

Why it stalls
Every step from then on is wasted: a weight that is NaN stays NaN.

How it is measured
From the last state of Keras's progress bar on the job's console. If the losses were logged, ST301
judges them instead.

Example
"120/500 ━━━━ 12s 33ms/step - loss: nan".

What to do
Look for the first NaN: bad values in the data, a logarithm or division without an epsilon, a
learning rate that is too high. tf.debugging.enable_check_numerics() names the op.

Blind spots
The bar shows the mean since the epoch began: one bad batch makes all of it NaN, although the
weights may have survived.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.signals.signals import Signals

ID = "ST315"
BUCKET = "numerics"


def check(signals: Signals) -> Finding | None:
    progress, learning = signals.console.progress, signals.learning
    has_losses = len(learning.steps) > 0 or len(learning.epoch_losses) > 0
    if progress is None or not progress.loss_is_nan or has_losses:
        return None
    return Finding(
        severity="act",
        title=f"According to the console, the loss is NaN at {progress.words}",
        explanation="Keras's last progress line shows loss: nan.",
        change=Change(
            "Find the first op whose result is not finite.",
            "",
            "tf.debugging.enable_check_numerics()",
            turns=(Turn("checks for NaN", "on"),),
        ),
        confidence=0.8,
    )
