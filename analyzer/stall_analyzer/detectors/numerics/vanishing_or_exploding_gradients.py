"""Gradients vanish or explode.

What it finds
Gradients from which nothing can be learned. A capture measures them in every layer, so the layer
can be named. Otherwise the evidence is what the program itself logged: gradient norms, shares of
zero gradients or update ratios. Without either, the evidence is several sigmoid layers in a row in
a model that learns nothing.

Why it stalls
With a gradient norm below 1e-4 from the start, updates are too small to matter; layers with 99%
zero gradients are dead; norms that grow a thousandfold end in NaN.

How it is measured
From the norms in a capture, or from scalars whose tag names a gradient: tags with "norm" are norms,
tags with "zero" are shares of zeros, and tags with "update" are ratios of update to weight.
Gradients vanish only if the median of the first records is small as well as the median of all,
because the gradient of a model that has converged is small, too. In a capture, a layer's gradient
must also be a thousand times smaller than that of the last layer, and either the layer's weights do
not move (updates below a millionth of their size) or the loss does not. Gradients explode if the
norm over all layers ends a thousand times larger than it began, or was already large when it became
NaN. From the stored model: the slope of sigmoid is at most a quarter, so five layers in a row leave
less than a thousandth of a gradient.

Example
Ten sigmoid layers: the norm of the first layer's gradient is 3e-8, a million times smaller than
that of the last one; the loss stays at ln(5).

What to do
Use relu or gelu instead of sigmoid and tanh in hidden layers, He initialization, batch or layer
normalization, or residual connections; use clipnorm against exploding gradients.

Blind spots
Most programs do not log gradients, so without a capture there is often nothing to go on. Histograms
of gradients are not read. With loss scaling, overflowing gradients are part of finding the scale;
only gradients that still overflow at the end are counted.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.layer_series import LayerSeries
from stall_analyzer.signals.numerics.stored_layers import WeightLayer
from stall_analyzer.signals.signals import Signals

ID = "ST310"
BUCKET = "numerics"

# Limits that found the vanished gradients and frozen layers among the runs measured, without a
# false alarm in 28 healthy ones.
VANISHED_NORM = 1e-4
ZERO_SHARE = 0.99
STILL_RATIO = 1e-6
# In healthy models the layers differ by a factor of ten or a hundred.
SMALLER = 1000.0
# Norms of healthy runs fall, or grow by a factor of ten.
EXPLODES = 1000.0
# A norm that becomes NaN between two measured steps had grown this many times before, or was this
# large: the gradients of a loss around 1 are around 1, too.
GREW_BEFORE = 100.0
HUGE_NORM = 1000.0
LEAST_RECORDS = 10
# One step may be an accident; the last few decide.
LAST_RECORDS = 3
# The slope of sigmoid is at most a quarter: this many layers in a row leave a thousandth.
FLAT_SLOPE = 0.25
FLAT_LAYERS = 5
# A loss that moves by a smaller share, with vanishing gradients, is not learning.
FLAT = 0.005

AGAINST_VANISHING = Change(
    "Use relu with He initialization in the hidden layers, and normalize between them.",
    before='keras.layers.Dense(units, activation="sigmoid")',
    after='keras.layers.Dense(units, activation="relu", kernel_initializer="he_normal")\n'
    "keras.layers.LayerNormalization()",
)
AGAINST_EXPLOSION = Change(
    "Clip the gradients, and lower the learning rate if the loss still grows.",
    before="keras.optimizers.SGD(learning_rate)",
    after="keras.optimizers.SGD(learning_rate, clipnorm=1.0)",
)


@dataclass(frozen=True)
class _BadGradients:
    """What is wrong with the gradients, and where."""

    vanishes: bool
    text: str
    consequence: str = "The affected layers do not learn"
    confidence: float = 0.8


def check(signals: Signals) -> Finding | None:
    bad = _of_layers(signals) or _of_logged(signals) or _of_stored_model(signals)
    if bad is None:
        return None
    return _finding(bad, signals.learning.is_flat(FLAT) or signals.learned_nothing)


# ---------------------------------------------------------------- in a capture


def _of_layers(signals: Signals) -> _BadGradients | None:
    gradients = signals.layers.gradients
    if gradients is None or len(gradients) < 2:
        return None
    return _explosion(gradients) or _vanishing(signals, gradients)


def _explosion(gradients: LayerSeries) -> _BadGradients | None:
    total = gradients.total
    finite = np.flatnonzero(np.isfinite(total))
    if len(finite) == 0:
        return None  # not finite from the very first step: the loss says so better
    first = float(median(total[finite[:LAST_RECORDS]]))
    last = total[-LAST_RECORDS:]
    lost = not np.isfinite(last).any()
    if lost and total[finite[-1]] < GREW_BEFORE * first and total[finite[-1]] < HUGE_NORM:
        return None  # NaN out of the blue: one batch or one operation caused it
    if not lost and not (first > 0 and np.nanmedian(last) > EXPLODES * first):
        return None
    # Where it can still be measured, the layer that has grown most from its own start.
    begin, end = gradients.value[finite[0]], gradients.value[finite[-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.where(begin > 0, end / begin, 0.0)
    worst = int(np.nanargmax(growth))
    layer, step = gradients.layers[worst], int(gradients.step[finite[-1]])
    grew = f"grew from {begin[worst]:.2g} to {end[worst]:.2g} at step {step}"
    if end[worst] <= begin[worst]:
        grew = f"was {end[worst]:.2g} at step {step}"
    then = ", and was NaN or infinite after that" if lost else ""
    return _BadGradients(False, f"the gradient norm of {layer} {grew}{then}", confidence=0.9)


def _vanishing(signals: Signals, gradients: LayerSeries) -> _BadGradients | None:
    if len(gradients) < LEAST_RECORDS:
        return None
    last = gradients.usual(gradients.layers[-1])
    for layer in gradients.layers[:-1]:
        values = gradients.of(layer)
        if len(values) < LEAST_RECORDS or not last:
            continue
        usual = max(float(median(values[:LEAST_RECORDS])), float(median(values)))
        if usual >= VANISHED_NORM or usual * SMALLER > last:
            continue
        updates = signals.layers.updates
        moved = updates.usual(layer) if updates is not None and layer in updates.layers else None
        still = moved is not None and moved < STILL_RATIO
        if not still and not signals.learning.is_flat(FLAT):
            continue  # Adam makes up for small gradients
        if usual == 0:
            return None  # nothing at all reaches it: units are dead, which ST312 reports
        unmoved = f"; each update moves {layer} by only {moved:.1e} of its size" if still else ""
        text = (
            f"the gradient norm of {layer} is {usual:.1e}, {last / usual:,.0f} times smaller than "
            f"that of {gradients.layers[-1]}{unmoved}"
        )
        is_first = layer == gradients.layers[0]
        who = f"{layer} does" if is_first else f"{layer} and the layers before it do"
        return _BadGradients(True, text, f"{who} not learn", 0.9)
    return None


# ---------------------------------------------------------------- logged by the program


def _of_logged(signals: Signals) -> _BadGradients | None:
    for tag, values in sorted(signals.learning.gradients.items()):
        bad = _bad_gradients(tag, values) if len(values) >= LEAST_RECORDS else None
        if bad is not None:
            return bad
    return None


def _bad_gradients(tag: str, values: Float64s) -> _BadGradients | None:
    if (values < 0).any():
        return None  # a logarithm, or something other than its name says
    first, usual = float(median(values[:LEAST_RECORDS])), float(median(values))
    if "update" in tag.lower():
        if max(first, usual) < STILL_RATIO:
            text = f"updates are only {usual:.1e} times the size of the weights ({tag})"
            return _BadGradients(True, text)
    elif "zero" in tag.lower():
        if min(first, usual) >= ZERO_SHARE:
            return _BadGradients(True, f"{usual:.1%} of the gradients are zero ({tag})")
    elif "norm" in tag.lower():
        if max(first, usual) < VANISHED_NORM:
            text = f"the gradient's norm has been {usual:.1e} from the start ({tag})"
            return _BadGradients(True, text)
        last = float(median(values[-LEAST_RECORDS:]))
        if first > 0 and (not np.isfinite(last) or last > EXPLODES * first):
            text = f"the gradient's norm grew from {first:.2g} to {last:.2g} ({tag})"
            return _BadGradients(False, text)
    return None


# ---------------------------------------------------------------- by the stored model


def _of_stored_model(signals: Signals) -> _BadGradients | None:
    """Only where no gradient was measured, and the loss agrees."""
    layers = signals.stored_layers
    if signals.layers.gradients is not None or not layers.is_chain or not signals.learned_nothing:
        return None
    rows = [list(row) for flat, row in groupby(layers.hidden, key=_is_flat_layer) if flat]
    longest = max(rows, key=len, default=[])
    if len(longest) < FLAT_LAYERS:
        return None
    left = FLAT_SLOPE ** len(longest)
    text = f"{len(longest)} sigmoid layers in a row shrink them to at most {left:.0e} of their size"
    not_learned = f"The layers before {longest[-1].name} do not learn"
    return _BadGradients(True, text, not_learned, 0.75)


def _is_flat_layer(layer: WeightLayer) -> bool:
    return layer.activation in ("sigmoid", "hard_sigmoid") and not layer.normalized


def _finding(bad: _BadGradients, is_flat: bool) -> Finding:
    word = "vanish" if bad.vanishes else "explode"
    return Finding(
        severity="act" if bad.vanishes and is_flat else "consider",
        title=f"Gradients {word}: {bad.text}",
        explanation=(
            f"{bad.consequence}{', and the loss shows it' if is_flat else ''}."
            if bad.vanishes
            else "The updates grow with the gradients and end in NaN."
        ),
        change=AGAINST_VANISHING if bad.vanishes else AGAINST_EXPLOSION,
        confidence=bad.confidence,
    )
