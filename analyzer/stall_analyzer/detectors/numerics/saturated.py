"""A layer's sigmoid or tanh units are saturated and get no gradient.

What it finds
Layers with sigmoid, tanh or the like whose units get no gradient at all over whole batches.

Why it stalls
Far from zero these functions are flat: beyond about 9, tanh is 1 to the last digit of float32, and
its slope is exactly 0. Inputs in the hundreds drive every unit there, and the layer keeps the
weights that it started with.

How it is measured
From a capture: the share of each layer's units whose gradient was exactly zero over a batch, in at
least the last eight measured steps; 90% or more must be affected. The layer's activation comes from
the stored model. If there are several such layers, the last one is named, because it blocks the
gradient for those before it.

Example
Raw measurements of up to 400,000 as the input of tanh: 94% of the units in the first layer get no
gradient.

What to do
Scale the inputs to about 1, and normalize between the layers. A lower learning rate does not help
units that are saturated from the start.

Blind spots
Without a capture, nothing is known about the units; without a stored model, nothing about
activations.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import at_least
from stall_analyzer.model.kinds import Severity
from stall_analyzer.signals.numerics.layer_series import LayerSeries
from stall_analyzer.signals.numerics.learned import has_learned
from stall_analyzer.signals.numerics.stored_layers import SATURATING
from stall_analyzer.signals.signals import Signals

ID = "ST327"
BUCKET = "numerics"

MOST = 0.9
ALL = 0.999
LEAST_MEASURED = 8  # each over a whole batch


def check(signals: Signals) -> Finding | None:
    shares = signals.layers.dead
    if shares is None or len(shares) < LEAST_MEASURED or len(shares.layers) < 2:
        return None
    layer = _last_without_gradients(shares)
    activation = signals.stored_layers.activation_of(layer) if layer is not None else None
    if layer is None or activation not in SATURATING:
        return None
    share = float(shares.value[-LEAST_MEASURED:, shares.layers.index(layer)].min())
    harmless: Severity = "note" if has_learned(signals.learning) else "consider"
    return Finding(
        severity="act" if signals.learned_nothing else harmless,
        title=f"{at_least(share)} of the units of {layer} are saturated",
        explanation=(
            f"In at least the last {LEAST_MEASURED} measured steps, they got no gradient from any "
            f"example in the batch. {activation} is flat far from zero, and that is where its "
            "inputs are."
            + (" The loss agrees: nothing is learned." if signals.learned_nothing else "")
        ),
        change=Change(
            "Scale the inputs to about 1.",
            before="model = keras.Sequential([keras.Input(shape), ...])",
            after="scale = keras.layers.Normalization()\nscale.adapt(x)\n"
            "model = keras.Sequential([keras.Input(shape), scale, ...])",
        ),
        confidence=0.85,
    )


def _last_without_gradients(shares: LayerSeries) -> str | None:
    """The one closest to the loss; None where the last layer gets no gradients either."""
    hidden = shares.layers[:-1]
    recent = shares.value[-LEAST_MEASURED:]
    if not (recent[:, -1] < ALL).all():
        return None
    found = [layer for at, layer in enumerate(hidden) if (recent[:, at] >= MOST).all()]
    return found[-1] if found else None
