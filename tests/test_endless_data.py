"""Epochs and validations that cannot end, because their data repeats."""

from __future__ import annotations

import pytest

from stall_analyzer.captures.capture_records import MarkRecord
from stall_analyzer.model.event_log import Capture
from stall_analyzer.signals.ending.endless_data import endless_data

BEGUN = (MarkRecord(1, "fit_begin"), MarkRecord(2, "epoch_begin", 0))


@pytest.mark.parametrize(
    ("stages", "is_endless"),
    [
        (["Root::Prefetch::ForeverRepeat", "Root::Prefetch::ForeverRepeat::BatchV2"], True),
        (["Root::FiniteRepeat::TensorSlice"], False),
        (["Root::Zip::ForeverRepeat"], False),  # the other part of it may end
        (["Root::TakeWhile::ForeverRepeat"], False),
        # shuffle() and repeat() in one: if its size is known, it ends only if Keras knows it.
        (["Root::ShuffleAndRepeat", "Root::ShuffleAndRepeat::BatchV2"], True),
        (["Root::ShuffleAndRepeat", "Root::ShuffleAndRepeat::Generator"], False),
    ],
)
def test_repeated_data_never_ends_unless_something_around_it_does(
    stages: list[str], is_endless: bool
) -> None:
    assert (endless_data(Capture(marks=BEGUN), stages) is not None) == is_endless


def test_an_epoch_whose_steps_are_known_ends() -> None:
    begin = MarkRecord(1, "fit_begin", steps=100)
    assert endless_data(Capture(marks=(begin, *BEGUN[1:])), ["Root::ForeverRepeat"]) is None


def test_an_epoch_that_ended_could_end() -> None:
    marks = (*BEGUN, MarkRecord(3, "epoch_end", 0))
    assert endless_data(Capture(marks=marks), ["Root::ForeverRepeat"]) is None


def test_a_validation_is_endless_if_the_capture_says_so() -> None:
    begin = MarkRecord(3, "validation_begin", 0, endless=True)
    found = endless_data(Capture(marks=(*BEGUN, begin)), [])
    assert found is not None and found.argument == "validation_steps"
    over = MarkRecord(4, "validation_end", 0)
    assert endless_data(Capture(marks=(*BEGUN, begin, over)), []) is None


def test_a_generator_that_yields_for_ever_is_named() -> None:
    begin = MarkRecord(1, "fit_begin", endless=True, where="/home/me/train.py:3 batches")
    found = endless_data(Capture(marks=(begin, *BEGUN[1:])), [])
    assert found is not None and "could not end: the generator at train.py:3" in found.sentence
