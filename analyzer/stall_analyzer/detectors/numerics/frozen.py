"""Layers that should learn are not trained.

What it finds
Layers that are marked trainable but never change: the optimizer is never applied, it is given the
variables of another model or only some of this model's, or its updates are so small that not a
single bit of the weights changes.

Why it stalls
The steps compute gradients, but nothing is done with them.

How it is measured
A capture samples the weights of each layer at the end of epochs 1, 2, 3, 4, 8 and so on and
compares them, counts the optimizer's updates, and records which variables it was given. In custom
loops, the model and the optimizer must be passed: watch(logdir, model, optimizer). Where the
optimizer is never applied, is given none of the model's variables, or gets no gradient for any of
them, the finding is more than a note; where updates are too small or some layers are left out, it
is more than a note only if the loss agrees that nothing is learned.

Example
The model was created again after its variables had been put into a list: the optimizer trains the
old model.

What to do
Inside the step, use the trainable_variables of the model that is called there.

Blind spots
Layers that another optimizer trains do change, and are not reported. In an embedding, only the rows
in use change, so a large embedding may seem not to change. A loop that starts training a layer only
after many epochs looks the same until then.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_records import WeightsRecord
from stall_analyzer.detectors.numerics.loss_agrees import learns_nothing
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed
from stall_analyzer.model.kinds import Severity
from stall_analyzer.signals.signals import Signals

ID = "ST316"
BUCKET = "numerics"

# Before that, updates may be delayed: accumulated over steps, or skipped by loss scaling.
LEAST_STEPS = 30

TOO_SMALL = (
    "They get gradients, but the updates are zero, or too small for the precision of the weights."
)


def check(signals: Signals) -> Finding | None:
    weights = signals.layers.weights
    if weights is None or weights.steps < LEAST_STEPS or not weights.still:
        return None
    if set(weights.still) == set(weights.layers):
        return _nothing_moves(signals, weights)
    left_out = [layer for layer in weights.still if layer in weights.not_given]
    return _some_left_out(signals, left_out) if left_out else None


def _nothing_moves(signals: Signals, weights: WeightsRecord) -> Finding | None:
    why, change = _reason(weights)
    if why == TOO_SMALL and not _has_gradients(signals):
        return None  # where no gradient comes back from the loss, other findings say why
    return Finding(
        severity=_severity(signals, why),
        title="No weight of the model changes",
        explanation=(
            f"In {weights.steps} steps, not a single bit of the weights of "
            f"{listed(weights.layers)} has changed. {why}"
        ),
        change=change,
        confidence=0.95,
    )


def _reason(weights: WeightsRecord) -> tuple[str, Change]:
    of_the_model = Change(
        "Apply the gradients to the variables of the model that is called in the step.",
        before="optimizer.apply_gradients(zip(gradients, variables))",
        after="optimizer.apply_gradients(zip(gradients, model.trainable_variables))",
    )
    if weights.updates == 0:
        return "The optimizer was never applied.", Change(
            "Apply the gradients in every step.",
            before="gradients = tape.gradient(loss, model.trainable_variables)",
            after="gradients = tape.gradient(loss, model.trainable_variables)\n"
            "optimizer.apply_gradients(zip(gradients, model.trainable_variables))",
        )
    if set(weights.layers) <= set(weights.not_given):
        return "The optimizer was given variables that are not the model's.", of_the_model
    if set(weights.layers) <= set(weights.no_gradient):
        return "The loss does not depend on them: there is no gradient.", of_the_model
    return (
        TOO_SMALL,
        Change(
            "Check the learning rate, the clipping, and whether gradients are zero.",
            before="optimizer = keras.optimizers.SGD(1e-9)",
            after="optimizer = keras.optimizers.SGD(0.01)",
        ),
    )


def _severity(signals: Signals, why: str) -> Severity:
    """A model that has learned everything stops moving as well: its loss shows whether it has."""
    if why != TOO_SMALL:
        return "act"
    has_baseline = signals.batches is not None and signals.batches.baseline is not None
    return "act" if has_baseline and learns_nothing(signals) else "note"


def _has_gradients(signals: Signals) -> bool:
    gradients = signals.layers.gradients
    return gradients is not None and bool(np.nanmedian(gradients.total) > 0)


def _some_left_out(signals: Signals, layers: list[str]) -> Finding:
    agrees = learns_nothing(signals)
    return Finding(
        severity="consider" if agrees else "note",
        title=f"The optimizer is not given the weights of {listed(layers)}",
        explanation=(
            "They are marked trainable, but were never given to the optimizer and have not "
            "changed. The list of variables may have been made before all layers were built, or "
            "belong to another model."
        ),
        change=Change(
            "Give the optimizer all variables that should learn, or set trainable=False.",
            before="optimizer.apply_gradients(zip(gradients, head.trainable_variables))",
            after="optimizer.apply_gradients(zip(gradients, model.trainable_variables))",
        ),
        confidence=0.8 if agrees else 0.5,
    )
