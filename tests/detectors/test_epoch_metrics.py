"""What the losses and metrics of whole epochs say: one answer for all, losses that rise, rates that
are gone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stall_analyzer.detectors.numerics import (
    collapsed_latent,
    learning_rate_too_low,
    loss_explodes,
    no_progress,
    one_answer,
    unscaled_input,
)
from stall_analyzer.model.event_log import EventLog
from tests.detectors.logged_losses import EPOCH_S, checked, events, model, scalars, severity
from tests.detectors.training import found

BINARY = model("binary_crossentropy", 1, "sigmoid")
REGRESSION = model("mean_squared_error", 1)
RISING = (1.6, 1.5, 1.9, 2.4, 3.0, 4.0)
FALLING = (1.6, 1.3, 1.0, 0.8, 0.7, 0.6)


def of_epochs(
    validation: Mapping[str, Sequence[float]] | None = None, **train: Sequence[float]
) -> EventLog:
    log = events(keras=BINARY, **{f"epoch_{name}": values for name, values in train.items()})
    held = {
        f"epoch_{name}": scalars(values, EPOCH_S, EPOCH_S)
        for name, values in (validation or {}).items()
    }
    return replace(log, validation=held)


def test_a_recall_of_zero_means_that_a_class_is_never_recognized() -> None:
    finding = found(checked(one_answer, of_epochs(loss=FALLING, recall=(0.05, 0, 0, 0, 0, 0))))
    assert "recall is 0" in finding.title and "fell from 1.6 to 0.6" in finding.explanation


def test_a_recall_that_comes_late_is_none_of_zero() -> None:
    assert severity(one_answer, of_epochs(loss=FALLING, recall=(0, 0, 0, 0, 0, 0.2))) is None
    at_last = {"recall": (0, 0, 0, 0, 0.1, 0.3)}
    log = of_epochs(at_last, loss=FALLING, recall=(0, 0, 0, 0, 0, 0))
    assert severity(one_answer, log) is None, "the validation knows better"


def test_an_accuracy_that_never_changes_is_that_of_one_answer() -> None:
    log = of_epochs({"accuracy": [0.93] * 6}, loss=FALLING, accuracy=[0.942] * 6)
    assert "accuracy is 0.942" in found(checked(one_answer, log)).title


def test_accuracies_that_change_or_are_good_are_those_of_models_that_look() -> None:
    changing = of_epochs(loss=FALLING, accuracy=(0.5, 0.6, 0.7, 0.7, 0.71, 0.7))
    assert severity(one_answer, changing) is None
    assert severity(one_answer, of_epochs(loss=FALLING, accuracy=[1.0] * 6)) is None


def test_a_regression_may_have_any_accuracy() -> None:
    log = replace(of_epochs(loss=FALLING, accuracy=[0.0] * 6), keras=REGRESSION)
    assert severity(one_answer, log) == "note", "but it is worth a word that it means nothing"
    assert severity(one_answer, replace(log, keras=BINARY)) == "consider"


def test_an_output_among_several_is_named_with_its_own_metric() -> None:
    log = replace(
        of_epochs(loss=RISING, kind_loss=RISING, kind_accuracy=[0.36] * 6, price_mae=FALLING),
        keras=None,
    )
    assert found(checked(one_answer, log)).title.startswith("kind_accuracy is 0.36")


def test_a_loss_that_rises_in_training_and_validation_makes_the_model_worse() -> None:
    log = of_epochs({"loss": RISING}, loss=RISING, accuracy=(0.4, 0.5, 0.4, 0.3, 0.4, 0.4))
    assert found(checked(loss_explodes, log), "consider").title == "The loss rises from 1.5 to 4"


def test_a_loss_that_rises_because_the_task_does_is_left_alone() -> None:
    curriculum = of_epochs({"loss": FALLING}, loss=RISING)
    assert severity(loss_explodes, curriculum) is None
    better = of_epochs({"loss": RISING}, loss=RISING, accuracy=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9))
    assert severity(loss_explodes, better) is None
    assert severity(loss_explodes, of_epochs({"loss": RISING}, loss=FALLING)) is None, "overfitting"


def test_a_schedule_that_takes_the_rate_away_at_once_leaves_nothing_to_learn() -> None:
    log = of_epochs(loss=(0.78, *[0.77] * 5), learning_rate=[0.0] * 6)
    assert (
        "rate has been 0 since epoch 1" in found(checked(learning_rate_too_low, log), "act").title
    )
    rates = [10.0**-n for n in range(3, 12)]
    log = of_epochs(loss=(0.8, 0.71, *[0.7] * 7), learning_rate=rates)
    assert "since epoch 4" in found(checked(learning_rate_too_low, log), "act").title


def test_a_rate_that_is_taken_down_when_the_work_is_done_is_as_it_should_be() -> None:
    rates = [1e-3, 1e-3, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6]
    log = of_epochs(loss=(2.0, 0.3, *[0.2] * 5), learning_rate=rates)
    assert severity(learning_rate_too_low, log) is None


def test_a_huge_loss_that_hardly_falls_has_targets_that_are_not_scaled() -> None:
    huge = replace(of_epochs(loss=(1.1e11, 1.0e11, 9e10)), keras=REGRESSION)
    assert severity(unscaled_input, huge) == "note"
    learns = replace(of_epochs(loss=(3e8, 1e8, 3e7)), keras=REGRESSION)
    assert severity(unscaled_input, learns) is None


def test_a_loop_that_comes_to_rest_at_a_guess_is_worth_a_note() -> None:
    resting = events(loss=[math.log(2) + 0.02 * math.exp(-step / 30) for step in range(300)])
    assert severity(no_progress, resting) == "note"
    below = events(loss=[0.6 + 0.1 * math.exp(-step / 30) for step in range(300)])
    assert severity(no_progress, below) is None


def test_a_loop_that_hardly_leaves_the_guess_it_began_with_is_worth_a_note() -> None:
    slow = events(loss=[math.log(4) - 1e-4 * step for step in range(200)])
    assert severity(no_progress, slow) == "note"
    learns = events(loss=[math.log(4) - 1e-3 * step for step in range(200)])
    assert severity(no_progress, learns) is None


def test_what_any_model_learns_in_its_first_epoch_is_no_progress() -> None:
    log = events(*[[level] * 20 for level in (1.06, 1.02, 1.01, 1.0, 1.0)], keras=REGRESSION)
    assert severity(no_progress, log) == "note"
    log = events(*[[level] * 20 for level in (1.5, 1.02, 1.01, 1.0, 1.0)], keras=REGRESSION)
    assert severity(no_progress, log) is None, "it may have learned all there is"


def test_a_divergence_that_goes_to_nothing_leaves_a_code_without_information() -> None:
    collapsed = of_epochs(loss=(6.5, 1.43, 0.73, 0.53), kl_loss=(5.9, 1.0, 0.3, 0.1))
    assert "kl_loss has fallen from 5.9 to 0.1" in found(checked(collapsed_latent, collapsed)).title


def test_a_divergence_that_settles_or_a_loss_that_still_falls_is_healthy() -> None:
    settles = of_epochs(loss=(90.0, 70.0, 60.0, 58.0), kl_loss=(40.0, 20.0, 10.0, 8.0))
    assert severity(collapsed_latent, settles) is None
    learns = of_epochs(loss=(0.6, 0.43, 0.3, 0.2), kl_loss=(5.9, 1.0, 0.3, 0.1))
    assert severity(collapsed_latent, learns) is None
