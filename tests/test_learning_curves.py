"""How a run learned, as the page draws it: few points, none of them made up."""

from __future__ import annotations

import math

import numpy as np

from stall_analyzer.signals.numerics.layer_series import LayerSeries
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.learning_curves import MOST_POINTS, learning_curves, thinned
from stall_analyzer.signals.numerics.losses import StepLosses
from tests.real_documents import sample


def losses(*values: float) -> StepLosses:
    step = np.arange(1, len(values) + 1)
    zeros = np.zeros(len(values), dtype=np.int64)
    return StepLosses(step, zeros, zeros, np.array(values), np.zeros(len(values)))


def test_without_a_loss_there_is_nothing_to_draw() -> None:
    assert learning_curves(LearningSignals(), None) is None


def test_the_loss_is_drawn_by_steps_if_these_were_logged() -> None:
    curves = learning_curves(LearningSignals(steps=losses(2.5, 2.4, 2.3)), None)
    assert curves is not None
    assert (curves.per, curves.loss) == ("step", ((1, 2.5), (2, 2.4), (3, 2.3)))


def test_it_is_drawn_by_epochs_if_only_these_were_logged() -> None:
    curves = learning_curves(LearningSignals(epoch_losses=np.array([2.5, 2.0])), None)
    assert curves is not None
    assert (curves.per, curves.loss) == ("epoch", ((1, 2.5), (2, 2.0)))


def test_a_constant_guess_has_a_cost_if_the_labels_are_known() -> None:
    curves = learning_curves(LearningSignals(steps=losses(2.5, 2.4), label_cost=2.25), None)
    assert curves is not None
    assert curves.baseline == 2.25
    assert "the best constant answer" in curves.baseline_words


def test_a_long_curve_keeps_the_first_nan() -> None:
    value = np.ones(10 * MOST_POINTS)
    value[1234] = math.nan
    points = dict(thinned(np.arange(len(value)), value, MOST_POINTS))
    assert len(points) <= MOST_POINTS + 2
    assert math.isnan(points[1234])
    assert points[1233] == 1.0


def test_gradients_are_given_by_layer_in_the_models_order() -> None:
    gradients = LayerSeries(("dense", "head"), np.array([1, 5]), np.array([[0.1, 1], [0.2, 2]]))
    curves = learning_curves(LearningSignals(steps=losses(2.5, 2.4)), gradients)
    assert curves is not None
    assert curves.gradients == (("dense", ((1, 0.1), (5, 0.2))), ("head", ((1, 1.0), (5, 2.0))))


def test_the_document_has_null_for_nan() -> None:
    learning = sample("numerics_nan")["learning"]
    assert learning is not None
    values = [point["value"] for point in learning["loss"]]
    assert None in values
    assert any(value is not None for value in values)
