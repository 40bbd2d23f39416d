"""What the stored model shows: each lint alone is a note, and more than that if the loss agrees."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.detectors.numerics import (
    bad_init,
    batch_of_one,
    clip_too_low,
    missing_nonlinearity,
    saturated,
    unscaled_input,
    vanishing_or_exploding_gradients,
    wrong_loss_or_activation,
    wrong_reduction,
)
from stall_analyzer.model.event_log import EventLog
from tests.detectors.logged_losses import Numbers, checked, events, falling, noisy, severity
from tests.detectors.stored_models import VERSIONS, stored
from tests.detectors.training import diagnosed, found, signals_for

LN10, LN2 = math.log(10), math.log(2)
LINTS = (
    bad_init, batch_of_one, clip_too_low, missing_nonlinearity, saturated, unscaled_input,
    vanishing_or_exploding_gradients, wrong_loss_or_activation, wrong_reduction,
)  # fmt: skip


def in_vain(model: str, version: str = "keras3", guess: float = LN10) -> EventLog:
    """A classifier that only guesses, epoch after epoch."""
    epochs = [noisy(guess, 0.005, seed=seed) for seed in range(3)]
    chance = math.exp(-guess)
    return events(*epochs, accuracy=(chance, chance, chance), keras=stored(model, version))


def learning(model: str, version: str = "keras3", first: float = LN10) -> EventLog:
    return events(
        falling(first, 0.5), falling(0.5, 0.2), falling(0.2, 0.1),
        accuracy=(0.6, 0.9, 0.95), keras=stored(model, version),
    )  # fmt: skip


def regression(model: str, *epochs: Numbers) -> EventLog:
    return events(*epochs, keras=stored(model))


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("detector", LINTS, ids=lambda d: d.ID)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_model_is_left_alone_whatever_its_loss(detector: ModuleType, version: str) -> None:
    assert checked(detector, in_vain("sound", version)) is None
    assert checked(detector, learning("sound", version)) is None


@pytest.mark.parametrize(
    ("detector", "model"),
    [
        (bad_init, "zeros"),
        (missing_nonlinearity, "linear"),
        (wrong_loss_or_activation, "hidden softmax"),
        (wrong_loss_or_activation, "nearly all dropped"),
        (wrong_reduction, "summed"),
    ],
)
def test_a_model_that_looks_odd_and_learns_is_a_note(detector: ModuleType, model: str) -> None:
    assert severity(detector, learning(model)) == "note"


# ---------------------------------------------------------------- ST323


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("model", ["zeros", "zeros, functional", "zeros, nested"])
def test_hidden_weights_of_zero_explain_a_guess(model: str, version: str) -> None:
    finding = found(checked(bad_init, in_vain(model, version)), "act")
    assert "start at 0" in finding.title


def test_a_last_layer_of_zeros_is_a_good_start() -> None:
    assert checked(bad_init, in_vain("zeros last")) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_where_something_leads_around_the_layer_it_is_only_likely(version: str) -> None:
    assert severity(bad_init, in_vain("zeros, gone around", version)) == "consider"


@pytest.mark.parametrize("version", VERSIONS)
def test_biases_below_zero_in_front_of_relu(version: str) -> None:
    finding = found(checked(bad_init, in_vain("bias below zero", version)), "act")
    assert "start at -0.6" in finding.title
    assert checked(bad_init, learning("bias below zero", version)) is None
    behind = learning("bias below zero, relu behind", version)
    assert severity(bad_init, behind) == "note"  # -2 is far below zero for any scaled input


def test_weights_that_start_too_wide_are_the_reason_for_a_high_first_loss() -> None:
    log = learning("wide", first=150.0)
    assert severity(bad_init, log) == "consider"
    assert [f.id for f in diagnosed(align([], log)).findings if f.bucket == "numerics"] == ["ST323"]


# ---------------------------------------------------------------- ST324


def test_a_clip_that_leaves_nothing_of_the_updates() -> None:
    finding = found(checked(clip_too_low, in_vain("clipped")), "act")
    assert finding.title.startswith("clipnorm=0.0001 limits updates to 1.0e-06")
    assert checked(clip_too_low, learning("clipped")) is None


def test_clips_of_a_usual_size_are_left_alone() -> None:
    assert checked(clip_too_low, in_vain("clipped, momentum")) is None


def test_adam_divides_by_the_size_of_the_gradient_so_that_a_clip_shortens_nothing() -> None:
    assert checked(clip_too_low, in_vain("clipped adam")) is None


# ---------------------------------------------------------------- ST325


def one_by_one(model: str, examples: int) -> EventLog:
    """With an accuracy for each step, over that many examples."""
    right = np.random.default_rng(3).binomial(examples, 0.34, size=120) / examples
    means = np.cumsum(right) / np.arange(1, 121)
    log = in_vain(model, guess=math.log(3))
    return EventLog(
        {**log.train, **events(batch_accuracy=means).train}, {}, log.keras, log.first_wall_ns,
        None, None, 1,
    )  # fmt: skip


def test_accuracies_that_are_all_or_nothing_tell_batches_of_one() -> None:
    assert signals_for(align([], one_by_one("normalized", 1))).batch_size == 1
    assert signals_for(align([], one_by_one("normalized", 2))).batch_size is None


def test_batch_normalization_leaves_nothing_of_one_example() -> None:
    assert severity(batch_of_one, one_by_one("normalized", 1)) == "act"
    assert checked(batch_of_one, one_by_one("normalized", 4)) is None


def test_pictures_have_positions_to_average_over() -> None:
    assert checked(batch_of_one, one_by_one("normalized pictures", 1)) is None


# ---------------------------------------------------------------- ST326


@pytest.mark.parametrize("version", VERSIONS)
def test_layers_without_activations_are_one_linear_layer(version: str) -> None:
    finding = found(checked(missing_nonlinearity, in_vain("linear", version, LN2)), "act")
    assert finding.title.endswith("have no activation: the model is linear")


def test_a_linear_regression_that_learns_all_it_can_in_its_first_steps_is_a_note() -> None:
    quick = np.concatenate([[9.0, 3.0, 1.4], noisy(1.0, 0.05)])
    log = regression("linear regression", quick, noisy(1.0, 0.05), noisy(0.999, 0.05, seed=4))
    assert severity(missing_nonlinearity, log) == "note"


def test_a_lookup_of_words_is_not_linear() -> None:
    assert checked(missing_nonlinearity, in_vain("words", guess=LN2)) is None


# ---------------------------------------------------------------- ST307


def test_softmax_over_the_batch_is_wrong_even_where_the_loss_falls() -> None:
    assert severity(wrong_loss_or_activation, learning("softmax over the batch")) == "consider"
    assert severity(wrong_loss_or_activation, in_vain("softmax over the batch")) == "act"


def test_softmax_in_a_hidden_layer_explains_a_guess() -> None:
    assert severity(wrong_loss_or_activation, in_vain("hidden softmax")) == "act"


def test_an_autoencoder_with_sigmoid_outputs_is_sound() -> None:
    gray = regression("sigmoid output", falling(0.23, 0.07), noisy(0.069, 0.001))
    assert checked(wrong_loss_or_activation, gray) is None


def test_a_relu_output_whose_loss_stops_for_good_puts_out_zeros() -> None:
    stopped = regression("relu output", falling(5.4, 5.0), *([[5.0] * 60] * 4))
    assert severity(wrong_loss_or_activation, stopped) == "act"
    at_rest = regression("relu output", falling(5.4, 0.5), *([[0.5] * 60] * 4))
    assert checked(wrong_loss_or_activation, at_rest) is None


# ---------------------------------------------------------------- ST310, ST309, ST328


@pytest.mark.parametrize("version", VERSIONS)
def test_sigmoid_layers_in_a_row_explain_a_guess(version: str) -> None:
    log = in_vain("sigmoids", version)
    finding = found(checked(vanishing_or_exploding_gradients, log), "act")
    assert "6 sigmoid layers in a row" in finding.title
    assert checked(vanishing_or_exploding_gradients, learning("sigmoids", version)) is None


def test_a_first_loss_that_is_high_by_its_penalty_is_no_unscaled_input() -> None:
    """64 × 64 weights of variance 2 / 128 under an L2 of 1 add 64."""
    assert checked(unscaled_input, learning("penalized", first=66.0)) is None
    assert severity(unscaled_input, learning("penalized", first=200.0)) == "consider"
    assert severity(unscaled_input, learning("outputs penalized", first=66.0)) == "note"


def test_class_weights_count_in_training_alone() -> None:
    weighted = (falling(60.0, 30.0), falling(30.0, 20.0), falling(20.0, 15.0))
    assert severity(unscaled_input, events(*weighted, keras=stored("sound"))) == "consider"
    log = events(*weighted, validation=(2.0, 1.2, 1.0), keras=stored("sound"))
    assert checked(unscaled_input, log) is None


def test_a_summed_loss_is_too_long_a_step_for_sgd_and_not_for_adam() -> None:
    thrown = (noisy(22_000, 90), noisy(1400, 9), noisy(900, 9))
    accuracy = (0.1, 0.09, 0.09)
    sgd = events(*thrown, accuracy=accuracy, keras=stored("summed"))
    adam = events(*thrown, accuracy=accuracy, keras=stored("summed, adam"))
    assert severity(wrong_reduction, sgd) == "act"
    assert severity(wrong_reduction, adam) == "note"


# ---------------------------------------------------------------- the verdict


def test_the_verdict_names_the_cause_and_what_comes_of_it() -> None:
    report = diagnosed(align([], in_vain("zeros")))
    assert report.verdict.status == "learning_nothing"
    assert report.verdict.sentence.startswith("Learning nothing: All weights of dense")
    assert [f.id for f in report.findings if f.bucket == "numerics"] == ["ST323"]
