"""Logged gradients vanish or explode.

What it finds
Gradient norms, shares of zero gradients or update ratios that the program logged itself, at values
with which nothing can be learned.

Why it stalls
With a gradient norm below 1e-4 from the start, updates are too small to matter; layers with 99 % of
zero gradients are dead; norms that grow a thousandfold end in NaN.

How it is measured
From scalars whose tag names a gradient: tags with "norm" are norms, with "zero" shares of zeros,
with "update" ratios of update to weight. Vanishing needs small values in the first records as well
as in the middle ones, because the gradient of a model that has converged is small, too.

Example
Ten sigmoid layers: the norm of the first layer's gradient is 3e-8, the loss stays at ln(5).

What to do
relu or gelu instead of sigmoid and tanh in hidden layers, He initialisation, batch or layer
normalisation, residual connections; clipnorm against explosions.

Blind spots
Most programs do not log gradients; then this says nothing. Histograms of gradients are not read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stall_analyzer.answers import Change, Finding
from stall_analyzer.model import Float64s
from stall_analyzer.signals import Signals

ID = "ST310"
NAME = "vanishing_or_exploding_gradients"
BUCKET = "numerics"

# Two rules that found the vanished and the frozen among measured runs without a false alarm on 28
# healthy ones.
VANISHED_NORM = 1e-4
ZERO_SHARE = 0.99
STILL_RATIO = 1e-6
# Norms of healthy runs fall, or grow by a factor of ten.
EXPLODES = 1000.0
LEAST_RECORDS = 10
# A loss that moves by less of itself, beside gradients that vanish, is not learning.
FLAT = 0.005


@dataclass(frozen=True)
class _Complaint:
    vanishes: bool
    text: str


def check(signals: Signals) -> Finding | None:
    for tag, values in sorted(signals.learning.gradients.items()):
        complaint = _complaint(tag, values) if len(values) >= LEAST_RECORDS else None
        if complaint is not None:
            return _finding(tag, complaint, signals.learning.is_flat(FLAT))
    return None


def _complaint(tag: str, values: Float64s) -> _Complaint | None:
    if (values < 0).any():
        return None  # a logarithm, or something else than its name says
    first, usual = float(np.median(values[:LEAST_RECORDS])), float(np.median(values))
    if "update" in tag.lower():
        if max(first, usual) < STILL_RATIO:
            return _Complaint(True, f"updates are {usual:.1e} of the weights")
    elif "zero" in tag.lower():
        if min(first, usual) >= ZERO_SHARE:
            return _Complaint(True, f"{usual:.1%} of the gradients are zero")
    elif "norm" in tag.lower():
        if max(first, usual) < VANISHED_NORM:
            return _Complaint(True, f"the gradient's norm is {usual:.1e}, from the start")
        last = float(np.median(values[-LEAST_RECORDS:]))
        if first > 0 and (not np.isfinite(last) or last > EXPLODES * first):
            return _Complaint(False, f"the gradient's norm grew from {first:.2g} to {last:.2g}")
    return None


def _finding(tag: str, complaint: _Complaint, is_flat: bool) -> Finding:
    word = "vanish" if complaint.vanishes else "explode"
    return Finding(
        id=ID,
        name=NAME,
        bucket=BUCKET,
        severity="act" if complaint.vanishes and is_flat else "consider",
        title=f"Gradients {word}: {complaint.text} ({tag})",
        explanation=(
            f"The program logged {tag}, and it says that {complaint.text}. "
            + (
                "The layers it is about do not learn"
                + (", and the loss does not move." if is_flat else ".")
                if complaint.vanishes
                else "The updates grow with it, and end in NaN."
            )
        ),
        change=_against_vanishing() if complaint.vanishes else _against_explosion(),
        confidence=0.8,
    )


def _against_vanishing() -> Change:
    return Change(
        "Use relu with He initialisation in the hidden layers, and normalise between them.",
        before='keras.layers.Dense(units, activation="sigmoid")',
        after='keras.layers.Dense(units, activation="relu", kernel_initializer="he_normal")\n'
        "keras.layers.LayerNormalization()",
    )


def _against_explosion() -> Change:
    return Change(
        "Clip the gradients, and lower the learning rate if the loss still grows.",
        before="keras.optimizers.SGD(learning_rate)",
        after="keras.optimizers.SGD(learning_rate, clipnorm=1.0)",
    )
