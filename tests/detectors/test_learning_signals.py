"""What the numerics detectors look at: losses of steps, trends, settings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.align.align import align
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.signals.numerics.learning import learning_signals
from stall_analyzer.signals.numerics.learning_rates import effective_rate
from stall_analyzer.signals.numerics.losses import step_losses
from stall_analyzer.signals.numerics.model_settings import ModelSettings, settings_of
from stall_analyzer.signals.numerics.trend import trend_of
from tests.detectors.logged_losses import events, model


def as_logged(step: list[int], value: list[float], tag: str = "batch_loss") -> EventLog:
    wall = 10**9 * np.arange(1, len(step) + 1)
    series = Series(np.array(step), wall, np.array(value, dtype=np.float64))
    return EventLog({tag: series}, {}, None, 0, None, None, 1)


LOSSES = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=60)


@given(st.lists(LOSSES, min_size=1, max_size=3))
def test_the_running_mean_is_undone_within_its_rounding(epochs: list[list[float]]) -> None:
    steps = step_losses(events(*epochs), None)
    truth = np.concatenate(epochs)
    assert len(steps) == len(truth)
    assert (np.abs(steps.value - truth) <= steps.rounding + 1e-9).all()
    assert steps.epoch.tolist() == [n for n, epoch in enumerate(epochs) for _ in epoch]


def test_records_of_every_tenth_step_give_the_mean_in_between() -> None:
    steps = step_losses(as_logged([10, 20, 30], [2.0, 1.5, 1.2]), None)
    assert steps.value == pytest.approx([2.0, 1.0, 0.6])


def test_losses_that_were_never_a_mean_are_left_as_they_are() -> None:
    raw = [2.0, 0.4, 1.8, 0.5, 1.1, 0.3, 0.9, 0.2]
    assert step_losses(as_logged([*range(1, 9)], raw), None).value.tolist() == raw
    assert step_losses(as_logged([*range(1, 4)], [3.0, 2.0, 1.9], "loss"), None).value.tolist() == [
        3.0, 2.0, 1.9,
    ]  # fmt: skip


def test_a_second_fit_in_the_same_file_is_not_read() -> None:
    steps = step_losses(as_logged([1, 2, 3, 1, 2], [3.0, 2.5, 2.0, 9.0, 9.0]), None)
    assert steps.value == pytest.approx([3.0, 2.0, 1.0])


def test_what_follows_an_infinite_mean_is_not_known() -> None:
    steps = step_losses(as_logged([1, 2, 3], [1.0, math.inf, math.inf]), None)
    assert np.isfinite(steps.value).tolist() == [True, False, False]


def test_the_first_bad_step_and_what_comes_after_it() -> None:
    learning = learning_signals(align([], events([1.0] * 6 + [math.nan] * 2, [math.nan] * 4)))
    bad = learning.not_finite
    assert bad is not None
    assert (bad.step, bad.epoch, bad.share, bad.to_the_end) == (7, 0, 0.25, True)
    assert bad.at_ps is not None and bad.at_ps > 0
    assert learning.steps_per_epoch == 8


def test_rates_and_step_counts() -> None:
    log = events([1.0] * 6, [0.9] * 6, rates=(1e-3, 1e-4), keras=model(rate=1e-2))
    learning = learning_signals(align([], log))
    assert (learning.rate, learning.highest_rate, learning.step_count) == (1e-3, 1e-2, 12)
    assert effective_rate(ModelSettings(optimizer="SGD", momentum=0.9), 0.1) == pytest.approx(1.0)
    assert effective_rate(ModelSettings(optimizer="Adam", momentum=0.9), 0.1) == 0.1


def test_a_trend_against_its_scatter() -> None:
    random = np.random.default_rng(1)
    still = trend_of(1 + 0.1 * random.normal(size=300))
    falling = trend_of(1 + 0.1 * random.normal(size=300) - np.linspace(0, 0.3, 300))
    assert still is not None and falling is not None
    assert still.scatter == pytest.approx(0.1, rel=0.2)
    assert abs(still.fall) < 2 * still.error and abs(still.turning) < 0.2
    assert falling.fall > 5 * falling.error and falling.fall == pytest.approx(0.2, abs=0.03)
    assert trend_of(np.ones(8)) is None
    alternating = trend_of(np.where(np.arange(60) % 2, 3.0, 1.0))
    assert alternating is not None and alternating.turning < -0.8
    assert alternating.early == alternating.late == 2.0


@pytest.mark.parametrize(
    ("keras", "loss", "classes"),
    [
        (model("SparseCategoricalCrossentropy", 7), "sparse_categorical_crossentropy", 7),
        (model("bce", 1, "sigmoid"), "binary_crossentropy", 2),
        (model(["mse"], 1), "mean_squared_error", None),
        (model({"head": "categorical_crossentropy"}, 4), "categorical_crossentropy", 4),
        (model(["mse", "mae"], 1), None, None),
        (model(17), None, None),
        (None, None, None),
    ],
)
def test_loss_and_classes(keras: KerasConfig | None, loss: str | None, classes: int | None) -> None:
    settings = settings_of(keras)
    assert (settings.loss, settings.classes) == (loss, classes)


def test_keras_2_stores_layers_only_and_they_tell_the_classes() -> None:
    stored = model(units=1, activation="sigmoid")
    old = KerasConfig(7, "Sequential", stored.layers)
    assert (settings_of(old).loss, settings_of(old).classes) == (None, 2)
    linear = KerasConfig(7, "Sequential", model(units=5).layers)
    assert settings_of(linear).classes is None


def test_the_optimizer_under_loss_scaling_is_the_real_one() -> None:
    inner = {"class_name": "SGD", "config": {"learning_rate": 0.1, "momentum": 0.9}}
    settings = settings_of(model(optimizer="LossScaleOptimizer", inner_optimizer=inner))
    assert (settings.optimizer, settings.momentum, settings.highest_rate) == ("SGD", 0.9, 0.1)
