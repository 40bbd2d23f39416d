"""Some variables get no gradient.

What it finds
Weights that the loss does not depend on: they never change.

Why it stalls
These layers learn nothing, however long the training lasts. Often a whole branch was not connected.

How it is measured
From Keras's warning on the job's console. A capture also records the layers for which the optimizer
got None as a gradient; those whose weights have never changed are reported. By itself, that is only
a note, unless the loss agrees that nothing is learned.

Example
"Gradients do not exist for variables ['dense_3/kernel', 'dense_3/bias'] when minimizing the loss."

What to do
Use the layer's output in the loss, or do not train the layer. Between the weights and the loss, use
only differentiable TensorFlow ops (no NumPy, no casts to int, no argmax).

Blind spots
Layers that are left out on purpose, such as the pooler of a pretrained model, cause the same
warning.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.detectors.numerics.loss_agrees import learns_nothing
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed
from stall_analyzer.signals.signals import Signals

ID = "ST314"
BUCKET = "numerics"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("no_gradients")
    weights = signals.layers.weights
    layers = [layer for layer in weights.no_gradient if layer in weights.still] if weights else []
    if warning is None and not layers:
        return None
    is_sure = warning is not None or learns_nothing(signals)
    named = f"The optimizer got no gradient for {listed(layers)}." if layers else ""
    return Finding(
        severity="consider" if is_sure else "note",
        title="Some variables get no gradient and learn nothing",
        explanation=f"{quoted(warning) if warning is not None else ''} {named}".strip(),
        change=Change(
            "Make the loss depend on these variables, or do not train their layers.",
            "layer = tf.keras.layers.Dense(units)",
            "layer = tf.keras.layers.Dense(units, trainable=False)",
        ),
        confidence=0.7,
    )
