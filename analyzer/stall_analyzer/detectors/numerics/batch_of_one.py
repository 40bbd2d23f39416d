"""Batch normalization is applied to batches of one example.

What it finds
A BatchNormalization layer after a dense layer, in a run whose batches contain a single example.

Why it stalls
In training, the layer subtracts the mean of the batch. The mean of one example is the example
itself, so only zero is left, whatever the input was: the layers after this one see the same values
in every step, and no gradient reaches the layers before it.

How it is measured
The stored model shows the layer. The batch size is known from a capture, from an input layer that
was built for batches of one, or from the accuracies of individual steps: if each step's accuracy is
either 0 or 1, each batch has one example. After a convolution, the mean is also taken over the
positions; that works, and is not reported.

Example
Dense(16), BatchNormalization, relu on batches of one: the loss is ln(3) in each of three epochs.

What to do
Use larger batches, or LayerNormalization, which does not look at the other examples.

Blind spots
Without a capture or an accuracy for each batch, the batch size is usually not known.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.signals.numerics.learned import has_learned
from stall_analyzer.signals.numerics.stored_layers import StoredLayers
from stall_analyzer.signals.signals import Signals

ID = "ST325"
BUCKET = "numerics"

OVER_THE_BATCH = frozenset({"BatchNormalization", "SyncBatchNormalization"})


def check(signals: Signals) -> Finding | None:
    layers = signals.stored_layers
    name = _over_examples_alone(layers)
    if name is None or signals.batch_size != 1 or not layers.is_chain:
        return None
    learned_nothing = signals.learned_nothing
    return Finding(
        severity="act"
        if learned_nothing
        else "note"
        if has_learned(signals.learning)
        else "consider",
        title=f"{name} normalizes batches of one example, which erases the input",
        explanation=(
            f"In training, {name} subtracts the mean of the batch, which is the example itself. "
            "Every later layer sees the same numbers for every input, and no gradient reaches the "
            "layers before it."
            + (" The loss agrees: nothing is learned." if learned_nothing else "")
        ),
        change=Change(
            "Use larger batches, or normalize within each example.",
            before="model.fit(x, y, batch_size=1)",
            after="model.fit(x, y, batch_size=32)  # or keras.layers.LayerNormalization()",
            turns=(Turn("batch size", "up"),),
        ),
        confidence=0.95 if learned_nothing else 0.8,
    )


def _over_examples_alone(layers: StoredLayers) -> str | None:
    """The first such layer that is trained on vectors: images have positions to average over."""
    for layer in layers.all:
        shape = layer.get("input_shape")
        if layer.get("class_name") not in OVER_THE_BATCH or layer.get("trainable") is False:
            continue
        if isinstance(shape, list) and len(shape) == 2:
            return str(layer.get("name"))
    return None
