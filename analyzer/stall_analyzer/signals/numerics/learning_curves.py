"""The loss and the gradients of a run, reduced to the few points that show their course."""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.columns import distinct
from stall_analyzer.model.learning_curves import LearningCurves, Point
from stall_analyzer.model.units import Float64s, Int64s
from stall_analyzer.signals.numerics.baseline import baseline_of
from stall_analyzer.signals.numerics.layer_series import LayerSeries
from stall_analyzer.signals.numerics.learning import LearningSignals

MOST_POINTS = 300  # more than a chart has room for
MOST_GRADIENTS = 30  # points of a layer
MOST_LAYERS = 40


def learning_curves(
    learning: LearningSignals, gradients: LayerSeries | None
) -> LearningCurves | None:
    """None where no loss was logged."""
    steps, epochs = learning.steps, learning.epoch_losses
    baseline = baseline_of(learning)
    if len(steps) > 1:
        loss = thinned(steps.step, steps.value, MOST_POINTS)
    elif len(epochs):
        loss = thinned(np.arange(1, len(epochs) + 1), epochs, MOST_POINTS)
    else:
        return None
    return LearningCurves(
        "step" if len(steps) > 1 else "epoch",
        loss,
        baseline.cost if baseline is not None else None,
        baseline.words if baseline is not None else "",
        _by_layer(gradients) if gradients is not None else (),
    )


def thinned(at: Int64s, value: Float64s, most: int) -> tuple[Point, ...]:
    """Evenly, but always with the first value that is not a number and the one before it."""
    chosen = np.linspace(0, len(at) - 1, min(len(at), most)).astype(np.int64)
    lost = np.flatnonzero(~np.isfinite(value))[:1]
    chosen = distinct(np.concatenate([chosen, lost, np.maximum(lost - 1, 0)]))
    return tuple(zip(at[chosen].tolist(), value[chosen].tolist(), strict=True))


def _by_layer(gradients: LayerSeries) -> tuple[tuple[str, tuple[Point, ...]], ...]:
    return tuple(
        (layer, thinned(gradients.step, gradients.value[:, column], MOST_GRADIENTS))
        for column, layer in enumerate(gradients.layers[:MOST_LAYERS])
    )
