"""The KL term of a variational model has fallen to zero: its latent code carries no information.

What it finds
A metric named after the Kullback-Leibler divergence (`kl`, `kl_loss`) that ends below a twentieth
of its highest value, while the rest of the loss hardly improves anymore.

Why it stalls
The divergence is the cost of encoding an input. Where it is 0, the encoder gives every input the
same distribution, and the decoder can only give the same answer for all of them.

How it is measured
From the metrics of at least four epochs in the event files. The last value of the divergence is
compared with its highest; the rest of the loss must fall by less than a tenth in the second half of
the epochs.

Example
The reconstruction loss was averaged over the pixels, but the divergence was summed. The divergence
went from 6.0 to 0.1 in five epochs, and all generated images look the same.

What to do
Put both terms on the same scale: sum both over the dimensions of one example, then average over the
batch. If it still collapses, slowly raise the weight of the divergence from 0.

Blind spots
Metrics with other names are not recognized. If the divergence is only a regularizer, and the latent
code does not depend on it, its fall to 0 looks the same.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.signals import Signals

ID = "ST331"
BUCKET = "numerics"

LEAST_EPOCHS = 4
GONE = 0.05  # of the highest epoch; warming up its weight reduces it by less
STILL_FALLS = 0.1  # of the rest, in the second half: then something is still being learned


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    for name, values in learning.metrics.items():
        is_divergence = "kl" in name.lower().split("_")
        if is_divergence and _is_gone(values) and _rest_stays(learning.epoch_losses, values):
            return Finding(
                severity="note",
                title=f"{name} has fallen from {values.max():.3g} to {values[-1]:.3g}",
                explanation=(
                    "If this is the divergence of a variational model, the latent code no longer "
                    "carries information, and the decoder gives the same answer for all inputs. "
                    "Usually the two terms of the loss are on different scales: one is a mean "
                    "over the dimensions of an example, the other a sum."
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
    """The loss without the divergence, or the whole loss if the divergence is not part of it."""
    if len(losses) != len(divergence) or not np.isfinite(losses).all():
        return False
    rest = losses - divergence if (losses > divergence).all() else losses
    middle = rest[len(rest) // 2]
    return bool(middle - rest[-1] < STILL_FALLS * abs(middle))
