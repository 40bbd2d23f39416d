"""The weights start at values that keep the model from learning.

What it finds
Hidden layers whose weights all start at the same number (zeros, ones, a constant), relu layers
whose biases start below zero, and initializers that are far too wide or too narrow for the layer's
size.

Why it stalls
With weights of zero, relu outputs zero and lets no gradient through. Units that start out the same
get the same gradients, so a layer of a hundred units does the work of one. A relu unit never fires
if its bias is so negative that its inputs cannot make up for it. Weights that are ten times too
large make each layer's outputs ten times too large; weights that are too small make all outputs
nearly the same.

How it is measured
From the initializers in the model that the TensorBoard callback stores. Weights that suit their
layer have a standard deviation of about 1 divided by the square root of the number of inputs; ten
times as much or a hundredth of it is far off. By itself, the finding is a note, because other
weights may have been loaded since. Where the loss shows that nothing is learned, or weights are too
wide and the first loss is more than ten times that of a guess, the initial weights are the likely
reason.

Example
Dense(2048, "relu", bias_initializer=Constant(-0.6)) on pixels from 0 to 1: no unit ever fires, and
the loss is ln(10) in each of four epochs.

What to do
Leave out the initializers: the defaults (Glorot for the kernel, zeros for the bias) suit nearly
every layer; He initialization suits deep relu networks.

Blind spots
Subclassed models are not stored. Weights that were set after the model was built are not seen.
"""

from __future__ import annotations

import math

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.kinds import Severity
from stall_analyzer.signals.numerics.stored_layers import StoredLayers, WeightLayer
from stall_analyzer.signals.signals import Signals

ID = "ST323"
BUCKET = "numerics"

# Fresh weights give sums of about 1 for inputs of about 1. A bias of -1 keeps most units silent
# from the start; a smaller one may do so where inputs are small, which only the loss can show.
SILENCES_MOST = -1.0
SILENCES_SOME = -0.01
# Times the square root of the number of inputs; between 1 and 1.5 with the usual initializers.
TOO_WIDE = 10.0
TOO_NARROW = 0.01
WIDE_ANYWHERE = 1.0  # for a layer whose number of inputs is not known
# As with unscaled inputs: if the first loss is this many times a guess, outputs are far too large.
FAR_ABOVE = 10.0


def check(signals: Signals) -> Finding | None:
    layers, learned_nothing = signals.stored_layers, signals.learned_nothing
    return (
        _alike(layers, learned_nothing)
        or _silent(layers, learned_nothing)
        or _badly_scaled(signals, learned_nothing)
    )


def _alike(layers: StoredLayers, learned_nothing: bool) -> Finding | None:
    """Only in hidden layers: a last layer of zeros is a good start."""
    alike = [layer for layer in layers.hidden if layer.kernel.constant is not None]
    if not alike:
        return None
    layer, value = alike[0], alike[0].kernel.constant
    why = "Units that start out the same get the same gradients and remain copies of each other."
    if value == 0 and layer.activation == "relu":
        why = "With weights of zero, relu outputs zero, and its gradient there is zero, too."
    return Finding(
        _severity(layers, learned_nothing),
        f"All weights of {layer.name} start at {value:.3g}",
        f"{why}{_and_so(learned_nothing)}",
        _default(layer, "kernel_initializer", "glorot_uniform"),
        confidence=0.9 if learned_nothing else 0.5,
    )


def _silent(layers: StoredLayers, learned_nothing: bool) -> Finding | None:
    most = SILENCES_SOME if learned_nothing else SILENCES_MOST
    silent = [
        layer
        for layer in layers.hidden
        if layer.activation == "relu"
        and not layer.normalized
        and (layer.bias.constant or 0) <= most
    ]
    if not silent:
        return None
    layer = silent[0]
    return Finding(
        _severity(layers, learned_nothing),
        f"The biases of {layer.name}, a relu layer, start at {layer.bias.constant:.3g}",
        "With such a bias, a unit fires only if its inputs make up for it. A unit that never "
        f"fires gets no gradient, so its bias never changes.{_and_so(learned_nothing)}",
        _default(layer, "bias_initializer", "zeros"),
        confidence=0.85 if learned_nothing else 0.5,
    )


def _badly_scaled(signals: Signals, learned_nothing: bool) -> Finding | None:
    layers, learning = signals.stored_layers, signals.learning
    wide = [layer for layer in layers.weighted if _is_wide(layer)]
    narrow = [layer for layer in layers.hidden if _is_narrow(layer)]
    if not wide and not narrow:
        return None
    layer = (wide or narrow)[0]
    first, guess = learning.first_loss, learning.settings.guess_loss
    far_above = bool(wide and first is not None and guess and first > FAR_ABOVE * guess)
    severity: Severity = "consider" if far_above else "note"
    much = "far too large" if wide else "far too small"
    for_inputs = f" for {layer.inputs:,} inputs" if layer.inputs is not None else ""
    return Finding(
        _severity(layers, learned_nothing) if learned_nothing else severity,
        f"The initial weights of {layer.name} are {much}",
        f"Their standard deviation is {layer.kernel.deviation:.3g}{for_inputs}. Outputs are about "
        "as large as inputs if it is about 1 divided by the square root of the number of inputs."
        + (f" The first loss was {first:.3g}; a guess would give {guess:.2g}." if far_above else "")
        + _and_so(learned_nothing),
        _default(layer, "kernel_initializer", "glorot_uniform"),
        confidence=0.8 if learned_nothing or far_above else 0.5,
    )


def _is_wide(layer: WeightLayer) -> bool:
    deviation = layer.kernel.deviation
    if deviation is None or layer.normalized:
        return False
    if layer.inputs is None:
        return deviation >= WIDE_ANYWHERE
    return deviation * math.sqrt(layer.inputs) >= TOO_WIDE


def _is_narrow(layer: WeightLayer) -> bool:
    deviation = layer.kernel.deviation
    if deviation is None or layer.inputs is None or layer.normalized:
        return False
    return deviation * math.sqrt(layer.inputs) <= TOO_NARROW


def _severity(layers: StoredLayers, learned_nothing: bool) -> Severity:
    """Where a connection bypasses the layer, others may learn without it."""
    if not learned_nothing:
        return "note"
    return "act" if layers.is_chain else "consider"


def _and_so(learned_nothing: bool) -> str:
    return " The loss agrees: nothing is learned." if learned_nothing else ""


def _default(layer: WeightLayer, which: str, name: str) -> Change:
    return Change(
        f"Leave out the {which} of {layer.name}: the default is fine.",
        before=f"keras.layers.{layer.kind}(..., {which}=...)",
        after=f'keras.layers.{layer.kind}(...)  # {which}="{name}"',
    )
