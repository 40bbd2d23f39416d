"""Labels and outputs have shapes that broadcast, so each label is compared with every output.

What it finds
Labels of shape (batch,) and outputs of shape (batch, 1), or the other way around, whose loss was
computed from all pairs of the two.

Why it stalls
The difference between the two is a table of batch times batch numbers. Its mean is smallest where
every output is the mean of the labels: the model learns a constant, without an error or a warning.

How it is measured
In some steps, a capture computes the mean squared and mean absolute differences of up to 256 rows,
both row by row and over all pairs. The logged loss must equal the mean over all pairs, but not the
mean row by row. Keras's own losses make both shapes the same, so they are never affected.

Example
loss = tf.reduce_mean((model(x) - y) ** 2) with y of shape (32,): the loss stays at the variance of
the labels.

What to do
Give both the same shape.

Blind spots
In custom loops, the values must be passed: w.step(loss=loss, y=y, y_pred=y_pred). Losses other than
these two are not recognized, and neither are batches of more than 256 rows.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.numerics.batch_look import Broadcast
from stall_analyzer.signals.signals import Signals

ID = "ST320"
BUCKET = "numerics"

SAME = 1e-3  # of the loss: what single precision and the order of summation can cause
OTHER = 1e-2  # of the loss: further off, it is certainly another number
LEAST_STEPS = 3


def check(signals: Signals) -> Finding | None:
    broadcast = signals.batches.broadcast if signals.batches is not None else None
    if broadcast is None or not _is_each_with_each(broadcast):
        return None
    return Finding(
        severity="act",
        title="The loss compares each output with the labels of all rows",
        explanation=(
            "Labels and outputs differ by one axis, such as (32,) and (32, 1), and broadcast to a "
            f"matrix. In all {len(broadcast.loss)} sampled steps, the loss was the mean over all "
            f"pairs: {broadcast.loss[-1]:.4g} in the last step. Row by row, it would have been "
            f"{broadcast.by_row[-1]:.4g}. Such a loss is smallest where all outputs are the same."
        ),
        change=Change(
            "Give labels and outputs the same shape before comparing them.",
            before="loss = tf.reduce_mean((model(x) - y) ** 2)",
            after="loss = tf.reduce_mean((tf.squeeze(model(x), -1) - y) ** 2)",
        ),
        confidence=0.97,
    )


def _is_each_with_each(broadcast: Broadcast) -> bool:
    loss = broadcast.loss
    if len(loss) < LEAST_STEPS or not np.isfinite(loss).all():
        return False
    scale = np.maximum(np.abs(loss), np.finfo(np.float32).tiny)
    is_same = np.abs(loss - broadcast.each_with_each) <= SAME * scale
    is_other = np.abs(loss - broadcast.by_row) > OTHER * scale
    return bool(is_same.all() and is_other.any())
