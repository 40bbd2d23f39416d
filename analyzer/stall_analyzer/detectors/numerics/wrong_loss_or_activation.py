"""The last layer's activation and the loss do not fit together.

What it finds
Pairs of last activation and loss that cannot work, or work only by luck: softmax over one unit, a
loss for probabilities on raw outputs or after relu or tanh, a loss over classes on a single unit.
Softmax over the examples of the batch, or in a hidden layer; a dropout of 0.9 or more; an output
with relu that stays zero. Also values that no correct program logs: a loss below its minimum, a
loss of 0 from the first step, an error larger than the last activation allows, an accuracy that
contradicts the loss.

Why it stalls
The loss then measures something other than what the model is meant to do. Training may run for
hours and produce a model that always gives the same answer.

How it is measured
From the model that the TensorBoard callback stores: the units and activation of the last layer, and
the name and from_logits of the loss. A sigmoid is between 0 and 1: if the targets were, too,
neither the error nor its square could be above 1 (2 and 4 for tanh), so a larger loss shows that
the targets are not. A classifier that is wrong gives the right class a probability of at most one
half, so the loss of that answer is at least ln(2), or 0.47 if the accuracy compares raw outputs
with 0.5: a loss that is more than a fifth below 0.47 times the share of errors is not computed from
the same values as the accuracy. The severity depends on the logged loss and accuracy: only what
cannot work, or what does not fit in a run that makes no progress, is rated "act". With relu in the
last layer, a loss that is the same to its last digit in three epochs means that all outputs are
zero.

Example
Dense(1, activation="softmax") with binary cross-entropy: Keras computes the loss from the values
before the softmax, so it falls to 0.002, while every prediction is exactly 1.

What to do
For two classes, use one unit, sigmoid and binary cross-entropy. For K classes, use K units, softmax
and (sparse) categorical cross-entropy. Or use no activation and from_logits=True in either case.

Blind spots
Models whose settings were not stored (subclassed ones, Keras 2), or that have several outputs or
custom losses, are not judged.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.numerics.impossible_values import impossible_value
from stall_analyzer.detectors.numerics.misfits import misfit
from stall_analyzer.detectors.numerics.mismatch import KINDS, Mismatch
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.kinds import Severity
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.model_settings import (
    BINARY,
    CATEGORICAL,
    CROSS_ENTROPIES,
    ModelSettings,
)
from stall_analyzer.signals.signals import Signals

ID = "ST307"
BUCKET = "numerics"

# A loss that moves by less than this over all epochs is not moving.
STILL = 1e-3
# The accuracy must have risen by this to count as learning.
RISEN = 0.05
# A loss that fell to half of its start has learned something; the accuracy should show it.
FALLEN = 0.5

PROBABILITIES = ("sigmoid", "softmax")


def check(signals: Signals) -> Finding | None:
    learning = signals.learning
    found = (
        _mismatch(learning.settings),
        impossible_value(signals),
        misfit(signals),
        _contradiction(learning),
    )
    mismatch = min(
        (one for one in found if one), key=lambda one: KINDS.index(one.kind), default=None
    )
    if mismatch is None:
        return None
    stuck = _stands_still(learning) or signals.learned_nothing
    severities: dict[str, Severity] = {
        "impossible": "act",
        "wrong": "act" if stuck else "consider",
        "suspect": "act" if stuck else "note",
        "odd": "consider" if stuck else "note",
    }
    severity = severities[mismatch.kind]
    return Finding(
        severity=severity,
        title=mismatch.title,
        explanation=" ".join([mismatch.why, *_numbers(learning)]),
        change=mismatch.change,
        confidence=0.95 if severity == "act" else 0.75,
    )


def _mismatch(settings: ModelSettings) -> Mismatch | None:
    output, loss = settings.output, settings.loss
    if output is None or loss is None:
        return None
    units, activation, layer = output.units, output.activation, f"the last layer ({output.name})"
    if units == 1 and activation == "softmax":
        return Mismatch(
            f"Softmax over the single unit of {layer} is always 1",
            "Softmax divides by the sum over the units, and here that is the unit itself. The loss "
            "may fall all the same, because Keras computes cross-entropy from the values before "
            "the softmax, but every prediction is 1.",
            Change("Use sigmoid.", _dense(1, "softmax"), _dense(1, "sigmoid")),
            "impossible",
        )
    if units == 1 and loss in CATEGORICAL:
        return Mismatch(
            f"{loss} is computed over the single unit of {layer}",
            "A loss over classes needs one unit per class; over one unit it is always 0.",
            Change("Use a binary (two-class) loss.", _loss(loss), _loss(BINARY)),
            "impossible",
        )
    if loss not in CROSS_ENTROPIES:
        return _squared(settings)
    if activation == "linear" and not settings.from_logits:
        return Mismatch(
            f"{loss} expects probabilities, but {layer} has no activation",
            "Raw outputs are clipped to the range from 0 to 1, and where they are clipped there is "
            "no gradient.",
            Change("Tell the loss to expect raw outputs.", _loss(loss), _logits(loss)),
            "wrong",
        )
    if activation in ("relu", "tanh"):
        return Mismatch(
            f"{loss} does not fit {activation} in {layer}",
            _why_cut_off(activation, settings.from_logits),
            Change(
                "Remove the activation from the last layer, and tell the loss to expect raw "
                "outputs.",
                _loss(loss),
                _logits(loss),
            ),
            "wrong",
        )
    return _looked_through(settings, layer)


def _why_cut_off(activation: str, from_logits: bool) -> str:
    if from_logits:
        return (
            f"The loss expects raw outputs of any size; {activation} cuts off part of them, and "
            f"where it does, there is no gradient."
        )
    if activation == "relu":
        return (
            "The loss expects probabilities, but relu also outputs values above 1, and it has no "
            "gradient below zero."
        )
    return (
        "The loss expects probabilities, but tanh also outputs values below 0, and where those are "
        "clipped there is no gradient."
    )


def _looked_through(settings: ModelSettings, layer: str) -> Mismatch | None:
    """Pairs that Keras on TensorFlow corrects by using the values before the activation."""
    assert settings.output is not None and settings.loss is not None
    activation, loss = settings.output.activation, settings.loss
    luck = (
        "Keras on TensorFlow uses the values before the activation instead, so the model trains; "
        "with any layer in between, or on another backend, it would not."
    )
    if settings.from_logits and activation in PROBABILITIES:
        return Mismatch(
            f"from_logits=True, but {layer} already has {activation}",
            f"The loss is told to expect raw outputs, but gets probabilities. {luck}",
            Change("Leave from_logits out.", _logits(loss), _loss(loss)),
            "odd",
        )
    if loss == BINARY and activation == "softmax":
        right = "categorical_crossentropy"
    elif loss in CATEGORICAL and activation == "sigmoid":
        right = BINARY
    else:
        return None
    return Mismatch(
        f"{loss} does not fit {activation} in {layer}",
        f"{activation} goes with {right}. {luck} The outputs are not the probabilities that the "
        "loss works with.",
        Change(f"If {activation} is intended, use {right}.", _loss(loss), _loss(right)),
        "odd",
    )


def _squared(settings: ModelSettings) -> Mismatch | None:
    if settings.loss != "mean_squared_error" or settings.output is None:
        return None
    if settings.output.activation != "softmax":
        return None
    return Mismatch(
        "The loss is the mean squared error of softmax outputs",
        "This works, but its gradient vanishes where the model is confidently wrong; "
        "cross-entropy learns faster there.",
        Change("Use cross-entropy.", _loss("mse"), _loss("categorical_crossentropy")),
        "odd",
    )


def _contradiction(learning: LearningSignals) -> Mismatch | None:
    """The loss falls, but the accuracy is the same number in every epoch."""
    losses, accuracies = learning.epoch_losses, learning.accuracies
    if len(losses) < 2 or len(accuracies) != len(losses) or learning.settings.loss is None:
        return None
    if learning.settings.loss not in CROSS_ENTROPIES or np.ptp(accuracies) > 0:
        return None
    if not losses[-1] < FALLEN * losses[0] or accuracies[-1] == 1:
        return None
    return Mismatch(
        f"The loss falls, but the accuracy is {accuracies[-1]:.3g} in every epoch",
        "A falling loss means that predictions change, and some of them should cross the "
        "threshold. Either the accuracy and the loss are not computed from the same values, or "
        "there is only one class.",
        Change(
            "Compare the shapes of labels and outputs, and look at a few predictions.",
            after="print(y[:8], model.predict(x[:8]))",
        ),
        "odd",
    )


def _stands_still(learning: LearningSignals) -> bool:
    broken, accuracies = learning.not_finite, learning.accuracies
    if broken is not None and broken.to_the_end:
        return True
    losses = learning.epoch_losses
    if len(losses) < 2 or not learning.is_flat(STILL):
        return False
    if len(accuracies):
        return bool(np.ptp(accuracies) < RISEN and accuracies[-1] < 1 - RISEN)
    return bool(losses[-1] != 0)


def _course(first: float, last: float) -> str:
    begin, end = f"{first:.3g}", f"{last:.3g}"
    return f"went from {begin} to {end}" if begin != end else f"stayed at {end}"


def _numbers(learning: LearningSignals) -> list[str]:
    said = []
    if len(learning.epoch_losses) > 1:
        first, last = learning.epoch_losses[0], learning.epoch_losses[-1]
        said.append(f"The loss {_course(first, last)} over the epochs.")
    if len(learning.accuracies) > 1:
        first, last = learning.accuracies[0], learning.accuracies[-1]
        said.append(f"The accuracy {_course(first, last)}.")
    return said


def _dense(units: int, activation: str) -> str:
    return f'keras.layers.Dense({units}, activation="{activation}")'


def _loss(name: str) -> str:
    return f'model.compile(optimizer, loss="{name}")'


def _logits(name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_"))
    return f"model.compile(optimizer, loss=keras.losses.{words}(from_logits=True))"
