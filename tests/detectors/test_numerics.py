"""The numerics detectors, each on its own case and on a near miss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.detectors.numerics import (
    learning_rate_too_high,
    learning_rate_too_low,
    loss_explodes,
    loss_not_finite,
    loss_oscillates,
    no_progress,
    numerics_checks,
    skipped_updates,
    unscaled_input,
    vanishing_or_exploding_gradients,
    wrong_loss_or_activation,
)
from stall_analyzer.model.event_log import EventLog, KerasConfig
from stall_analyzer.model.timeline import Timeline
from tests.detectors.logged_losses import checked, events, falling, model, noisy, severity
from tests.detectors.training import diagnosed, found
from tests.traces import TRAIN_OPS, call, ops, timeline_of, trainer

ALL = (
    loss_not_finite, loss_explodes, learning_rate_too_high, learning_rate_too_low, no_progress,
    loss_oscillates, wrong_loss_or_activation, skipped_updates, unscaled_input,
    vanishing_or_exploding_gradients, numerics_checks,
)  # fmt: skip


LN10 = math.log(10)
HEALTHY = {
    "classifier": events(falling(2.4, 0.5), falling(0.5, 0.2), keras=model()),
    "one epoch": events(falling(2.4, 0.5), keras=model()),
    "large regression": events(
        falling(1e7, 1e4), falling(1e4, 1e3), keras=model("mean_squared_error", 1)
    ),
    "fine-tuning": events(
        noisy(0.01, 0.004), noisy(0.0099, 0.004), accuracy=(0.996, 0.996), keras=model(rate=1e-5)
    ),
    "noisy batches of one": events(
        np.abs(noisy(1.5, 1.2)), np.abs(noisy(0.9, 0.8, seed=5)), keras=model()
    ),
    "slow beginning": events(
        noisy(2.31, 0.02), noisy(2.28, 0.02), noisy(2.25, 0.02), keras=model(rate=1e-5)
    ),
    "tiny data": events(noisy(2.3, 0.01, 3), noisy(2.3, 0.01, 3), keras=model()),
    "imbalanced": events(
        falling(0.7, 0.2), noisy(0.2, 0.05), accuracy=(0.95, 0.95),
        keras=model("binary_crossentropy", 1, "sigmoid"),
    ),
    "negative loss": events(5 - 0.1 * np.arange(60), -1 - 0.01 * np.arange(60)),
    "two losses": events(batch_d_loss=[0.7] * 60, batch_g_loss=[0.7] * 60),
    "nothing but accuracy": events(accuracy=(0.1, 0.1)),
}  # fmt: skip


@pytest.mark.parametrize("detector", ALL, ids=lambda d: d.ID)
@pytest.mark.parametrize("run", HEALTHY)
def test_healthy_runs_are_left_alone(detector: ModuleType, run: str) -> None:
    assert checked(detector, HEALTHY[run]) is None


# ---------------------------------------------------------------- ST301


def test_a_loss_that_stays_nan_is_lost() -> None:
    log = events([2.0] * 15 + [math.nan] * 45, [math.nan] * 60)
    finding = found(checked(loss_not_finite, log), "act")
    assert "from step 16 on" in finding.title
    assert "75% of this epoch's logged losses are from that step or later" in finding.explanation
    assert "not diverging" in finding.explanation
    assert diagnosed(align([], log)).verdict.status == "learning_nothing"


def test_a_nan_in_the_epochs_alone_or_in_a_loss_by_another_name() -> None:
    finding = found(checked(loss_not_finite, events(epoch_loss=(0.5, math.nan))))
    assert "epoch 2" in finding.title
    assert severity(loss_not_finite, events(epoch_d_loss=(0.5, math.inf))) == "act"


def test_one_bad_batch_is_no_verdict() -> None:
    poisoned = [2.0] * 15 + [math.nan] * 45
    assert severity(loss_not_finite, events(poisoned, falling(1.0, 0.5))) == "consider"
    assert severity(loss_not_finite, events(poisoned, validation=(0.7,))) == "consider"
    assert severity(loss_not_finite, events(poisoned, validation=(math.nan,))) == "act"


def test_a_loss_that_grew_before_it_broke_blames_the_rate() -> None:
    log = events([2.0, 9.0, 400.0, 1e9] + [math.nan] * 50, keras=model(rate=1e-2))
    finding = found(checked(loss_not_finite, log))
    assert "learning rate from 0.01 to 0.001" in finding.change.text


# ---------------------------------------------------------------- ST302, ST303, ST304


def test_explosions() -> None:
    growing = 2.0 * 1.12 ** np.arange(120)
    assert severity(loss_explodes, events(growing)) == "act"
    assert severity(loss_explodes, events(2.0 * 1.06 ** np.arange(120))) == "consider"
    assert severity(loss_explodes, events(2.0 * 1.02 ** np.arange(120))) is None
    assert severity(loss_explodes, events(epoch_loss=(0.5, 30.0, 900.0))) == "consider"


@pytest.mark.parametrize(
    ("optimizer", "rate", "expected"),
    [("Adam", 1.0, "act"), ("Adam", 0.03, "consider"), ("Adam", 1e-3, None),
     ("SGD", 20.0, "act"), ("SGD", 1.0, "consider"), ("SGD", 0.1, None), ("MyOwn", 9.0, None)],
)  # fmt: skip
def test_rates_that_are_too_high_where_the_loss_agrees(
    optimizer: str, rate: float, expected: str | None
) -> None:
    keras = model(optimizer=optimizer, rate=rate)
    jumped = [2.3, *noisy(40.0, 5.0, 59)]
    assert severity(learning_rate_too_high, events(jumped, keras=keras)) == expected
    assert severity(learning_rate_too_high, events(falling(2.3, 0.2), keras=keras)) is None
    guessing = events(noisy(9.0, 0.2), noisy(LN10, 0.02), keras=keras)
    assert severity(learning_rate_too_high, guessing) == expected


def test_momentum_multiplies_the_rate_and_a_loss_that_came_back_is_a_hint() -> None:
    keras = model(optimizer="SGD", rate=0.2, momentum=0.99)
    jumped = [2.3, *noisy(40.0, 5.0, 59)]
    finding = found(checked(learning_rate_too_high, events(jumped, keras=keras)))
    assert "momentum 0.99" in finding.title
    back = events(jumped, falling(2.0, 0.5), keras=model(rate=1.0))
    assert severity(learning_rate_too_high, back) == "consider"


@pytest.mark.parametrize(("rate", "advised"), [(1e4, "0.01"), (0.02, "0.002")])
def test_a_page_names_one_lower_rate(rate: float, advised: str) -> None:
    """The usual rate for one that nobody uses, otherwise a tenth of it."""
    diverged = 2.0 * 3.0 ** np.arange(60)
    broken = np.concatenate([diverged[:30], np.full(30, math.nan)])
    keras = model(optimizer="SGD", rate=rate)
    found_by = [
        checked(loss_not_finite, events(broken, keras=keras)),
        checked(loss_explodes, events(diverged, keras=keras)),
        checked(learning_rate_too_high, events(broken, keras=keras)),
    ]
    advice = [finding.change for finding in found_by if finding is not None]
    assert len(advice) == (3 if rate > 1 else 2)
    assert {turn.to for change in advice for turn in change.turns} == {advised}
    assert all(f"learning_rate={advised}" in change.after for change in advice)


def test_a_lower_rate_is_lower() -> None:
    """Momentum makes long steps of a small rate; the usual one would be higher."""
    keras = model(optimizer="SGD", rate=0.005, momentum=0.999)
    jumped = np.concatenate([[2.3], noisy(9e3, 10)])
    finding = found(checked(learning_rate_too_high, events(jumped, keras=keras)))
    assert [turn.to for turn in finding.change.turns] == ["0.0005"]


@pytest.mark.parametrize(
    ("optimizer", "rate", "expected"),
    [("Adam", 1e-8, "act"), ("Adam", 1e-7, "consider"), ("Adam", 1e-5, None),
     ("SGD", 1e-7, "act"), ("SGD", 1e-3, None), ("Adam", 0.0, "act")],
)  # fmt: skip
def test_rates_that_are_too_low_where_the_loss_agrees(
    optimizer: str, rate: float, expected: str | None
) -> None:
    keras = model(optimizer=optimizer, rate=rate)
    still = events(noisy(1.8, 0.1), noisy(1.8, 0.1), keras=keras)
    assert severity(learning_rate_too_low, still) == expected
    moving = events(falling(1.8, 0.4), falling(0.4, 0.2), keras=keras)
    assert severity(learning_rate_too_low, moving) is None


def test_a_rate_that_rises_later_is_warming_up() -> None:
    still = [noisy(1.8, 0.1)] * 2
    assert checked(learning_rate_too_low, events(*still, rates=(1e-8, 1e-5), keras=model())) is None
    schedule = {"class_name": "CosineDecay", "config": {"initial_learning_rate": 0.0,
                "warmup_target": 1e-3}}  # fmt: skip
    log = events(*still, rates=(1e-8, 1e-8), keras=model(rate=schedule))
    assert checked(learning_rate_too_low, log) is None
    own = {"class_name": "MySchedule", "config": {}}
    log = events(*still, rates=(1e-8, 1e-8), keras=model(rate=own))
    assert checked(learning_rate_too_low, log) is None


# ---------------------------------------------------------------- ST305, ST306


def test_a_loss_at_the_level_of_a_guess_names_both_possibilities() -> None:
    guesses = [noisy(LN10, 0.02)] * 2
    finding = found(checked(no_progress, events(*guesses, keras=model())), "consider")
    assert "labels" in finding.explanation and "updates" in finding.explanation
    learned = events(*guesses, accuracy=(0.1, 0.3), keras=model())
    assert checked(no_progress, learned) is None
    assert checked(no_progress, events(*[noisy(2.0, 0.02)] * 2, keras=model())) is None


def test_a_loss_that_stays_because_of_the_rate_is_told_as_the_rate() -> None:
    too_low = events(*[noisy(LN10, 0.02)] * 2, keras=model(rate=1e-8))
    ids = {finding.id for finding in diagnosed(align([], too_low)).findings}
    assert learning_rate_too_low.ID in ids and no_progress.ID not in ids


def test_three_epochs_of_guessing_with_an_accuracy_that_agrees_are_sure() -> None:
    for epochs, expected in ((2, "consider"), (3, "act")):
        guesses = [noisy(LN10, 0.02)] * epochs
        log = events(*guesses, accuracy=[0.11] * epochs, keras=model())
        assert severity(no_progress, log) == expected


def test_epochs_alone_can_tell_if_there_are_enough_of_them() -> None:
    for count, expected in ((3, None), (4, "act")):
        log = events(
            epoch_loss=LN10 - 0.001 * np.arange(count),
            accuracy=[0.1] * count,
            keras=model(optimizer="MyOwn"),
        )
        assert severity(no_progress, log) == expected


def test_a_loss_that_never_changes_and_a_model_that_cannot() -> None:
    assert severity(no_progress, events(*[[0.7] * 20] * 3)) == "consider"
    assert severity(no_progress, events(*[[0.0] * 20] * 3)) is None
    frozen = model("mean_squared_error", extra=({"class_name": "Dense", "units": 8},))
    layers = tuple({**layer, "trainable": False} for layer in frozen.layers)
    cannot = KerasConfig(**{**frozen.__dict__, "layers": layers})
    assert severity(no_progress, events(*[noisy(3, 0.1)] * 2, keras=cannot)) == "act"
    head = KerasConfig(**{**frozen.__dict__, "layers": (layers[0], frozen.layers[-1])})
    assert severity(no_progress, events(*[noisy(3, 0.1)] * 2, keras=head)) is None


def test_a_model_that_had_learned_and_only_guesses_since_is_broken() -> None:
    """For example, a NaN in the data turns the weights into NaN, and relu turns those into
    zeros."""
    learned = falling(2.4, 1.5, 20)
    broken = np.concatenate([learned, noisy(LN10, 0.006, 14)])
    finding = found(checked(no_progress, events(broken, keras=model())), "act")
    assert "at step 21" in finding.title and "NaN" in finding.explanation
    just_now = np.concatenate([learned, noisy(LN10, 0.006, 5)])
    assert checked(no_progress, events(just_now, keras=model())) is None
    recovers = np.concatenate([broken, falling(2.2, 1.5, 20)])
    assert checked(no_progress, events(recovers, keras=model())) is None


def test_small_batches_that_scatter_around_a_guess_have_not_learned() -> None:
    """The losses of single steps, and then, as captures record them, means of many steps."""
    guess = math.log(2)
    single = [0.79, 0.53, 0.56, 0.64, 0.87, 0.76, 0.61, 0.59, 0.91, 0.86, 0.77, 0.52, 0.48, 0.60]
    two_classes = model(units=2)
    scatters = np.concatenate([single, [0.63], noisy(guess, 0.005, 14)])
    assert severity(no_progress, events(scatters, keras=two_classes)) is None
    learned = np.concatenate([falling(0.8, 0.3, 15), noisy(guess, 0.005, 14)])
    assert severity(no_progress, events(learned, keras=two_classes)) == "act"


def test_a_loss_thrown_far_up_that_ends_at_a_guess_is_broken() -> None:
    thrown = np.concatenate([[42.0, 25_000.0, 3_800.0], noisy(LN10, 0.008, 60)])
    assert severity(no_progress, events(thrown, keras=model())) == "act"
    assert severity(no_progress, events(thrown[:40], keras=model())) is None
    learns_yet = events(thrown, thrown[3:], accuracy=(0.1, 0.4), keras=model())
    assert severity(no_progress, learns_yet) is None
    assert severity(no_progress, events(falling(40.0, 2.0, 80), keras=model())) is None


def test_a_loss_that_alternates() -> None:
    up_and_down = np.where(np.arange(60) % 2, 3.0, 0.9) + noisy(0, 0.05)
    assert severity(loss_oscillates, events(up_and_down)) == "consider"
    assert severity(loss_oscillates, events(up_and_down * np.linspace(1, 0.1, 60))) is None
    assert severity(loss_oscillates, events(noisy(1.5, 0.4))) is None
    two_batches = events(*up_and_down.reshape(30, 2))
    assert severity(loss_oscillates, two_batches) is None
    wilder = np.concatenate([noisy(1.0, 0.02, 30), np.abs(noisy(3.0, 2.0, 30)) + 1])
    assert severity(loss_oscillates, events(wilder)) == "consider"


# ---------------------------------------------------------------- ST307


STILL, FALLS = events(*[[0.7] * 30] * 2), events(falling(0.7, 0.1), falling(0.1, 0.05))


def with_model(log: EventLog, keras: KerasConfig) -> EventLog:
    return EventLog(**{**log.__dict__, "keras": keras})


@pytest.mark.parametrize(
    ("keras", "still", "falls"),
    [
        (model("binary_crossentropy", 1, "softmax"), "act", "act"),
        (model("categorical_crossentropy", 1, "sigmoid"), "act", "act"),
        (model("sparse_categorical_crossentropy", 10, "linear"), "act", "consider"),
        (model("bce", 1, "relu"), "act", "consider"),
        (model("BinaryCrossentropy", 1, "tanh", from_logits=True), "act", "consider"),
        (model("BinaryCrossentropy", 1, "sigmoid", from_logits=True), "consider", "note"),
        (model("binary_crossentropy", 10, "softmax"), "consider", "note"),
        (model("categorical_crossentropy", 10, "sigmoid"), "consider", "note"),
        (model("mse", 10, "softmax"), "consider", "note"),
        (model("binary_crossentropy", 1, "sigmoid"), None, None),
        (model("BinaryCrossentropy", 1, "linear", from_logits=True), None, None),
        (model("sparse_categorical_crossentropy", 10, "softmax"), None, None),
        (model("mse", 1, "linear"), None, None),
        (model("mse", 1, "relu"), None, None),
        (model(["mse", "binary_crossentropy"], 1, "softmax"), None, None),
        (model({"class_name": "function", "config": "binary_crossentropy"}, 1), None, None),
    ],
)
def test_pairs_of_loss_and_activation(
    keras: KerasConfig, still: str | None, falls: str | None
) -> None:
    assert severity(wrong_loss_or_activation, with_model(STILL, keras)) == still
    assert severity(wrong_loss_or_activation, with_model(FALLS, keras)) == falls


def test_an_activation_of_its_own_counts_as_the_last() -> None:
    softmax = {"class_name": "Activation", "name": "a", "activation": "softmax"}
    right = model("sparse_categorical_crossentropy", 10, "linear")
    log = with_model(FALLS, KerasConfig(**{**right.__dict__, "layers": (*right.layers, softmax)}))
    assert checked(wrong_loss_or_activation, log) is None


def test_a_loss_that_falls_while_the_accuracy_does_not_move() -> None:
    keras = model("binary_crossentropy", 1, "sigmoid")
    odd = events(falling(0.7, 0.1), falling(0.1, 0.05), accuracy=(0.5, 0.5), keras=keras)
    assert severity(wrong_loss_or_activation, odd) == "note"
    done = events(falling(0.7, 0.1), falling(0.1, 0.05), accuracy=(1, 1), keras=keras)
    assert severity(wrong_loss_or_activation, done) is None


# ---------------------------------------------------------------- ST308 to ST311


def steps_with(
    folder: Path, taught: Sequence[str], others: Sequence[int], every: tuple[str, ...]
) -> Timeline:
    """Steps of 10 ms; those in `others` run other ops than the rest."""
    calls, work = [], []
    for n in range(40):
        calls += call(n * 10, n * 10 + 10, run=n + 1)
        work += ops(n * 10, n * 10 + 10, n + 1, *(every if n in others else taught))
    return timeline_of(folder, trainer(calls, work))


SCALED = (*TRAIN_OPS[:2], "IsFinite:IsFinite", TRAIN_OPS[2])
SKIPPED = (*TRAIN_OPS[:2], "IsFinite:IsFinite")


@pytest.mark.parametrize(
    ("skipped", "expected"),
    [(range(2), None), (range(5), "note"), (range(12), "consider"), (range(3, 39), "act"),
     (range(0, 40, 8), "consider")],
)  # fmt: skip
def test_skipped_updates(tmp_path: Path, skipped: range, expected: str | None) -> None:
    timeline = steps_with(tmp_path, SCALED, skipped, SKIPPED)
    assert severity(skipped_updates, timeline) == expected


def test_a_first_loss_far_above_a_guess() -> None:
    high = falling(60.0, 0.5)
    assert severity(unscaled_input, events(high, keras=model())) == "consider"
    assert severity(unscaled_input, events(falling(6.0, 0.5), keras=model())) is None
    scaling = model(extra=({"class_name": "Rescaling"},))
    assert severity(unscaled_input, events(high, keras=scaling)) is None
    summed = {"class_name": "SparseCategoricalCrossentropy", "config": {"reduction": "sum"}}
    assert severity(unscaled_input, events(high, keras=model(summed))) is None


@pytest.mark.parametrize(
    ("tag", "values", "expected"),
    [
        ("batch_gradient_norm", [1e-6] * 40, True),
        ("batch_gradient_norm", [0.5] * 40, False),
        ("grad_norm/dense", [1.0] * 15 + [1e-6] * 40, False),  # converged
        ("grad_norm/dense", np.logspace(0, 6, 40), True),
        ("grad_zero_share", [0.995] * 40, True),
        ("grad_zero_share", [0.6] * 40, False),
        ("update_ratio", [1e-8] * 40, True),
        ("update_ratio", [1e-3] * 40, False),
        ("gradient_norm", [1e-6] * 3, False),  # too few
        ("gradient_norm_log", [-6.0] * 40, False),
        ("normal", [1e-6] * 40, False),
    ],
)
def test_logged_gradients(tag: str, values: Any, expected: bool) -> None:
    log = events(falling(1.0, 0.5), **{tag: values})
    assert (checked(vanishing_or_exploding_gradients, log) is not None) == expected


def test_gradients_that_vanish_under_a_loss_that_stands_still_teach_nothing() -> None:
    gone: dict[str, Any] = {"batch_gradient_norm": [1e-6] * 60}
    assert severity(vanishing_or_exploding_gradients, events(noisy(1.6, 0.02), **gone)) == "act"
    falls = events(falling(1.0, 0.5), **gone)
    assert severity(vanishing_or_exploding_gradients, falls) == "consider"


def test_checks_for_nan(tmp_path: Path) -> None:
    checks = (*TRAIN_OPS, "check/CheckNumerics:CheckNumericsV2")
    always = steps_with(tmp_path, TRAIN_OPS, range(40), checks)
    finding = found(checked(numerics_checks, always), "consider")
    assert 0 < finding.gain.low_ps <= finding.gain.high_ps == finding.lost_ps
    assert checked(numerics_checks, steps_with(tmp_path, TRAIN_OPS, range(2), checks)) is None
