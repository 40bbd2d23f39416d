"""Losses that are impossible for the given loss function and last layer: a part of ST307."""

from __future__ import annotations

import math

import numpy as np

from stall_analyzer.attribute.wasted_steps import BATCH_LOSSES
from stall_analyzer.detectors.numerics.mismatch import Mismatch
from stall_analyzer.model.findings import Change
from stall_analyzer.model.format import percent
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.model_settings import BINARY, CATEGORICAL, CROSS_ENTROPIES
from stall_analyzer.signals.signals import Signals

SQUARED, ABSOLUTE = "mean_squared_error", "mean_absolute_error"
NEVER_NEGATIVE = (*CROSS_ENTROPIES, SQUARED, ABSOLUTE, "huber", "hinge", "squared_hinge")
# Rounding does not make a loss this negative.
BELOW_ZERO = -1e-3
# From the lowest to the highest value that an activation gives.
SPAN = {"sigmoid": 1.0, "hard_sigmoid": 1.0, "softmax": 1.0, "tanh": 2.0}
# This many steps with a loss of exactly 0 are no coincidence.
LEAST_ZEROS = 10
ROUNDING = 1e-6  # of float32 sums that should be 0
# The least that a wrong answer costs where accuracy looks at raw outputs, which it counts as
# positive from 0.5 on: ln(1 + exp(-0.5)). For probabilities it is ln(2).
LEAST_COST = math.log(1 + math.exp(-0.5))
# A loss below this share of what the errors must cost is not due to rounding.
CONTRADICTS = 0.8

LOOK = Change(
    "Look at a few labels and predictions side by side: their range, their shape, their sign.",
    after="print(y[:8], model.predict(x[:8]))",
)


def impossible_value(signals: Signals) -> Mismatch | None:
    learning = signals.learning
    if not np.isfinite(learning.epoch_losses).all():
        return None
    return (
        _below_zero(learning)
        or _out_of_range(signals)
        or _always_zero(signals)
        or _contradicted(learning)
    )


def _below_zero(learning: LearningSignals) -> Mismatch | None:
    loss, epochs = learning.settings.loss, learning.epoch_losses
    if loss not in NEVER_NEGATIVE or not learning.settings.averaged or not len(epochs):
        return None
    if not epochs.min() < BELOW_ZERO:
        return None
    reason = (
        "A cross-entropy is negative only where labels lie outside the range from 0 to 1, such as "
        "-1 and 1 or class numbers above 1. It then has no minimum and falls forever."
        if loss in CROSS_ENTROPIES
        else "Only negative weights (sample or class) can make this loss negative."
    )
    return Mismatch(f"{loss} is {epochs.min():.3g}, although it cannot be below 0", reason, LOOK)


def _out_of_range(signals: Signals) -> Mismatch | None:
    """Errors that are larger than the last activation allows for targets within its range."""
    settings, epochs = signals.learning.settings, signals.learning.epoch_losses
    span = SPAN.get((settings.output.activation if settings.output else None) or "")
    if span is None or settings.loss not in (SQUARED, ABSOLUTE) or not settings.averaged:
        return None
    most = span if settings.loss == ABSOLUTE else span**2
    if not len(epochs) or not epochs.min() > most or _has_penalties(signals):
        return None
    assert settings.output is not None
    activation, name = settings.output.activation, settings.output.name
    low = -1 if activation == "tanh" else 0
    return Mismatch(
        f"The targets lie outside the range of {activation} in the last layer ({name})",
        f"{activation} outputs values between {low} and 1. If the targets were in that range, too, "
        f"{settings.loss} could not be above {most:.0f}, but it is {epochs.min():.3g} in the best "
        f"epoch. So some targets are out of reach, and they drive the units to where the gradient "
        f"is zero.",
        Change(
            "Remove the activation from the last layer, or scale the targets into its range.",
            before=f'keras.layers.Dense(units, activation="{activation}")',
            after="keras.layers.Dense(units)",
        ),
    )


def _always_zero(signals: Signals) -> Mismatch | None:
    learning, losses = signals.learning, signals.learning.steps.value
    if learning.first_loss is None or len(losses) < LEAST_ZEROS:
        return None
    exactly = not losses.any()
    if not exactly and (learning.settings.loss or not np.abs(losses).max() < ROUNDING):
        return None
    # A custom train_step() may keep its losses elsewhere, and Keras then logs a 0 as well.
    events = signals.timeline.events
    tags = set(events.train) if events is not None else set()
    if any("loss" in tag for tag in tags - {*BATCH_LOSSES, "epoch_loss"}):
        return None
    return Mismatch(
        f"The loss is {'exactly 0' if exactly else '0, except for rounding,'} from the first step "
        "on",
        "No model is right before it has learned anything. Either the loss is given the wrong "
        "values (the same tensor twice, a softmax over one unit, shapes that broadcast), or "
        "every example is removed by weights of 0 or by a mask.",
        LOOK,
        "impossible" if learning.settings.loss is not None else "odd",
    )


def _contradicted(learning: LearningSignals) -> Mismatch | None:
    """A loss that is lower than what the wrong answers alone must cost."""
    settings, losses, accuracies = learning.settings, learning.epoch_losses, learning.accuracies
    one_unit = settings.output is not None and settings.output.units == 1
    if settings.loss not in CATEGORICAL and not (settings.loss == BINARY and one_unit):
        return None
    if not settings.averaged or not len(losses) or len(losses) != len(accuracies):
        return None
    wrong = 1 - float(accuracies[-1])
    if not 0 <= losses[-1] < CONTRADICTS * LEAST_COST * wrong:
        return None
    return Mismatch(
        f"A loss of {losses[-1]:.3g} contradicts an accuracy of {accuracies[-1]:.3g}",
        f"The loss of each wrong answer is at least {LEAST_COST:.2g}, so with errors in "
        f"{percent(wrong, 1)} of the examples, the mean cannot be that low. The accuracy and the "
        f"loss are not computed from the same values: they use different shapes or thresholds, or "
        f"some examples have a weight or mask of 0.",
        LOOK,
        "odd",
    )


def _has_penalties(signals: Signals) -> bool:
    """Whether the logged loss contains more than the error: layer penalties count too."""
    events = signals.timeline.events
    layers = events.keras.layers if events is not None and events.keras is not None else ()
    return any(
        value is not None
        for layer in layers
        for key, value in layer.items()
        if key.endswith("_regularizer")
    ) or any(layer.get("class_name") == "ActivityRegularization" for layer in layers)
