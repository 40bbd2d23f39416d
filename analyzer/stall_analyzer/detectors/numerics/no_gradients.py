"""Some variables get no gradient.

What it finds
Weights that the loss does not depend on: they never change.

Why it stalls
These layers learn nothing, however long the training lasts. Often a whole branch was not connected.

How it is measured
Keras' warning on the console of the job.

Example
"Gradients do not exist for variables ['dense_3/kernel', 'dense_3/bias'] when minimizing the loss."

What to do
Use the layer's output in the loss, or do not train the layer. Do not leave TensorFlow between the
weights and the loss (NumPy, int casts, argmax).

Blind spots
Layers that are left out on purpose, such as the pooler of a pretrained model, give the same
warning.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST314"
BUCKET = "numerics"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("no_gradients")
    if warning is None:
        return None
    return Finding(
        severity="consider",
        title="Some variables get no gradient, and so learn nothing",
        explanation=quoted(warning),
        change=Change(
            "Let the loss depend on these variables, or do not train their layers.",
            "layer = tf.keras.layers.Dense(units)",
            "layer = tf.keras.layers.Dense(units, trainable=False)",
        ),
        confidence=0.7,
    )
