"""Which steps are measured."""

from __future__ import annotations

from itertools import pairwise

from tb_stall_plugin.capture.process.pulse import STEPS_FOR_MEDIAN
from tb_stall_plugin.capture.training.measured_steps import (
    EVERY,
    REST_S,
    SHARE_OF_TIME,
    MeasuredSteps,
)


def measured(steps: int, step_s: float, cost_s: float, looks: list[int] | None = None) -> list[int]:
    """The numbers of the measured steps. `looks` gets the steps after which it was asked."""
    chosen, ended, found = MeasuredSteps(), 0, []
    while ended < steps:
        count = chosen.rest(step_s)
        ended += count
        if looks is not None:
            looks.append(ended)
        was_due, _ = chosen.steps_ended(count)
        if was_due:
            found.append(ended - 1)
            chosen.took(cost_s, step_s)
    return found


def test_the_first_sixteen_and_then_one_in_sixteen() -> None:
    assert measured(64, step_s=0.1, cost_s=0.001) == [*range(EVERY), 31, 47, 63]


def test_fast_steps_are_measured_less_often() -> None:
    found = measured(10_000, step_s=0.001, cost_s=0.001)
    doubling = [31, 63, 127, 255, 511, 1023, 2047, 4095, 8191]
    assert set(doubling) <= set(found)  # whatever they cost: data may change
    others = set(found[EVERY:]) - set(doubling)
    assert 0.001 * len(others) <= SHARE_OF_TIME * 10_000 * 0.001
    assert len(found) > 2 * EVERY


def test_accumulated_gradients_are_seen_when_they_are_applied() -> None:
    for accumulated in (2, 4, 8, 16):
        found = measured(200, step_s=0.1, cost_s=0.001)[EVERY:]
        assert all((step + 1) % accumulated == 0 for step in found)


def test_a_look_in_between_changes_nothing() -> None:
    chosen = MeasuredSteps()
    for _ in range(EVERY):
        chosen.steps_ended(1)
    chosen.steps_ended(3)  # for example because the last of them took a long time
    assert chosen.rest() == EVERY - 1 - 3
    assert chosen.steps_ended(chosen.rest()) == (False, True)
    assert chosen.rest() == 1


def test_short_steps_are_left_alone_for_longer_but_none_is_missed() -> None:
    looks: list[int] = []
    found = measured(4096, step_s=0.001, cost_s=0.001, looks=looks)
    rests = [later - earlier for earlier, later in pairwise(looks)]
    assert EVERY < max(rests) <= REST_S / 0.001
    assert (
        max(later - earlier for earlier, later in pairwise(found)) <= 1 / SHARE_OF_TIME + 2 * EVERY
    )
    assert {1023, 2047, 4095} <= set(found)


def test_no_more_steps_pass_than_are_remembered() -> None:
    looks: list[int] = []
    measured(10_000, step_s=1e-5, cost_s=0.001, looks=looks)
    assert max(later - earlier for earlier, later in pairwise(looks)) <= STEPS_FOR_MEDIAN
