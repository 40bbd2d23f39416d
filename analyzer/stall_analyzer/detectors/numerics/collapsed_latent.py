"""The KL term of a variational model has gone to zero: its code carries no information.

What it finds
A metric that is named after the Kullback-Leibler divergence (`kl`, `kl_loss`) and ends below a
twentieth of its highest epoch, while the rest of the loss hardly gets better any more.

Why it stalls
The divergence is what the code of an input costs. Where it is 0, the encoder gives every input the
same distribution, and the decoder can only answer the same to all.

How it is measured
Metrics of at least four epochs from the event files: the divergence against its highest epoch, and
the rest of the loss, which must not fall by a tenth in the second half of them.

Example
The reconstruction was averaged over the pixels and the divergence summed: it went from 6.0 to 0.1
in five epochs, and the pictures all look alike.

What to do
Bring both terms onto one scale: sum both over the dimensions of one example, then average over the
batch. If it still collapses, raise the weight of the divergence slowly from 0.

Blind spots
Metrics with other names. A divergence that is only a regularizer, beside codes that need none.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.signals import Signals

ID = "ST331"
BUCKET = "numerics"

LEAST_EPOCHS = 4
GONE = 0.05  # of the highest epoch; warming its weight up takes less from it
STILL_FALLS = 0.1  # of the rest, in the second half: then something is learned all the same


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    for name, values in learning.metrics.items():
        is_divergence = "kl" in name.lower().split("_")
        if is_divergence and _is_gone(values) and _rest_stays(learning.epoch_losses, values):
            return Finding(
                severity="note",
                title=f"{name} has gone from {values.max():.3g} to {values[-1]:.3g}",
                explanation=(
                    "If it is the divergence of a variational model, its code no longer carries "
                    "anything, and the decoder answers the same to all inputs. Mostly the two "
                    "terms of "
                    "the loss are on different scales: one is a mean over the dimensions of an "
                    "example, the other a sum."
                ),
                change=Change(
                    "Sum both terms over the dimensions of one example, and average over the "
                    "batch.",
                    before="tf.reduce_mean(error) + tf.reduce_sum(divergence)",
                    after="tf.reduce_mean(tf.reduce_sum(error + divergence, -1))",
                ),
                confidence=0.6,
            )
    return None


def _is_gone(values: Float64s) -> bool:
    return len(values) >= LEAST_EPOCHS and bool(0 <= values[-1] < GONE * values.max())


def _rest_stays(losses: Float64s, divergence: Float64s) -> bool:
    """What the loss is without the divergence, or the loss where that is not a part of it."""
    if len(losses) != len(divergence) or not np.isfinite(losses).all():
        return False
    rest = losses - divergence if (losses > divergence).all() else losses
    middle = rest[len(rest) // 2]
    return bool(middle - rest[-1] < STILL_FALLS * abs(middle))
