"""The loss is summed over the batch instead of averaged.

What it finds
A loss with reduction="sum", or a first loss that equals the loss of a guess multiplied by the
number of examples in a batch.

Why it stalls
The gradient of a sum over 256 examples is 256 times that of their mean, and SGD's steps grow by the
same factor: a typical learning rate becomes far too high. The gradient also changes with the batch
size.

How it is measured
From the loss in the stored model. If the batch size is known, also from the loss of the first step,
which no update has touched: it is compared with ln(K) for K classes, multiplied by the batch size.
Adam and similar optimizers divide the gradient by its size, so a sum does them no harm. The finding
is more than a note only where the loss shows that nothing is learned.

Example
SparseCategoricalCrossentropy(reduction="sum") and SGD(0.1) on batches of 256: the loss is 22,330 in
the first epoch, and the accuracy stays at a tenth.

What to do
Leave out reduction: the default averages over the batch. Or divide the learning rate by the batch
size.

Blind spots
A sum in a custom loss shows only in the first loss, and only if the number of classes is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST328"
BUCKET = "numerics"

# These follow the size of the gradient; the others divide by it.
BY_GRADIENT = frozenset({"SGD", "Ftrl"})
# The first loss of a fresh classifier is between a guess and twice that.
LEAST_EXAMPLES = 8
NEAR = (0.9, 2.0)


def check(signals: Signals) -> Finding | None:
    said, seen = _is_summed(signals), _looks_summed(signals)
    if not said and not seen:
        return None
    learning = signals.learning
    by_gradient = learning.settings.optimizer in BY_GRADIENT
    broken = learning.not_finite is not None and learning.not_finite.to_the_end
    learned_nothing = by_gradient and (signals.learned_nothing or broken)
    first = learning.first_loss
    size = signals.batch_size
    over = "the batch, so gradients grow with the batch size"
    if size is not None and size > 1:
        over = f"{size:,} examples, which makes gradients {size:,} times as large"
    return Finding(
        severity="act" if learned_nothing else "note",
        title=f"The loss is summed over {over}",
        explanation=(
            (
                'The loss has reduction="sum".'
                if said
                else f"The first loss, {first:.3g}, is the loss of a guess multiplied by {size:,}, "
                "the number of examples in a batch."
            )
            + " The gradient grows with the number of examples. "
            + (
                f"{learning.settings.optimizer} uses the gradient as it is, so a typical learning "
                f"rate is far too high and nothing is learned."
                if learned_nothing
                else "The learning rate has to be smaller by the same factor, unless the "
                "optimizer divides by the size of the gradient, as Adam does."
            )
        ),
        change=Change(
            "Average over the batch.",
            before='keras.losses.SparseCategoricalCrossentropy(reduction="sum")',
            after="keras.losses.SparseCategoricalCrossentropy()",
        ),
        confidence=0.85 if learned_nothing else 0.6,
    )


def _is_summed(signals: Signals) -> bool:
    loss = signals.keras.compile_config.get("loss") if signals.keras is not None else None
    settings = loss.get("config") if isinstance(loss, Mapping) else None
    return isinstance(settings, Mapping) and settings.get("reduction") == "sum"


def _looks_summed(signals: Signals) -> bool:
    """Only for custom losses: one that Keras averages is never this high because of a sum."""
    output, first = signals.learning.settings.output, signals.learning.first_loss
    size = signals.batch_size
    if signals.learning.settings.loss is not None or output is None or first is None:
        return False
    if size is None or size < LEAST_EXAMPLES or output.activation != "softmax":
        return False
    if output.units is None or output.units < 2:
        return False
    low, high = (share * size * math.log(output.units) for share in NEAR)
    return low <= first <= high
