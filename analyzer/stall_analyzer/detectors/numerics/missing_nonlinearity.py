"""There is no activation between the layers: the model is linear.

What it finds
A model of two or more layers with weights, none of which has an activation except perhaps the last.

Why it stalls
Several linear layers in a row can do no more than one linear layer. However many there are, the
model can only draw straight lines between classes; where that is not enough, its loss stays at the
loss of a guess.

How it is measured
From the stored model: every layer before the last one with weights must be known to be linear. If
one of them is a custom layer, a recurrent layer or max pooling, nothing is reported. A linear model
may be intended, so the finding is a note; where the loss shows that nothing is learned, the missing
activation is the likely reason.

Example
Dense(32), Dense(32), Dense(1, "sigmoid") for points on two rings: the loss is ln(2) in each of five
epochs.

What to do
Give the hidden layers an activation, such as relu.

Blind spots
Subclassed models are not stored. Two linear layers in a row in a model that has activations
elsewhere are common and not reported.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed
from stall_analyzer.signals.signals import Signals

ID = "ST326"
BUCKET = "numerics"

NAMED_MOST = 3


def check(signals: Signals) -> Finding | None:
    layers = signals.stored_layers
    if not layers.is_linear:
        return None
    learned_nothing, hidden = signals.learned_nothing, layers.hidden
    names = listed([layer.name for layer in hidden], NAMED_MOST)
    have = "have" if len(hidden) > 1 else "has"
    return Finding(
        severity="act" if learned_nothing else "note",
        title=f"{names} {have} no activation: the model is linear",
        explanation=(
            f"Its {len(layers.weighted)} layers in a row can do no more than a single one: draw "
            f"straight lines."
            + (
                " The loss is still that of a guess: here, straight lines are not enough."
                if learned_nothing
                else ""
            )
        ),
        change=Change(
            "Give the hidden layers an activation.",
            before=f"keras.layers.{hidden[0].kind}(units)",
            after=f'keras.layers.{hidden[0].kind}(units, activation="relu")',
        ),
        confidence=0.8 if learned_nothing else 0.5,
    )
