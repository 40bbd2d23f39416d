"""What input takes from the steps, measured against those beside which it did nothing."""

from __future__ import annotations

import numpy as np
import pytest

from stall_analyzer.attribute.contention import _against_calm_steps
from stall_analyzer.model.units import Float64s

MS = 1e9
STEPS = 200


def steps(really_lost: float, estimate: float, turn: int = 10) -> tuple[Float64s, Float64s]:
    """Steps of 20 ms; in every other turn input takes something from them."""
    busy = (np.arange(STEPS) // turn) % 2 == 1
    return np.where(busy, 20 + really_lost, 20.0) * MS, np.where(busy, estimate, 0.0) * MS


@pytest.mark.parametrize("really_lost", [3.0, 5.0, 8.0])
def test_the_estimate_is_scaled_to_what_the_steps_lose(really_lost: float) -> None:
    compute, estimate = steps(really_lost, estimate=5.0)
    assert _against_calm_steps(compute, estimate) == pytest.approx(really_lost / 5.0, rel=0.05)


def test_a_machine_that_slows_down_meanwhile_does_not_count_as_input() -> None:
    compute, estimate = steps(5.0, estimate=5.0)
    drift = np.linspace(1.0, 1.3, STEPS)
    assert _against_calm_steps(compute * drift, estimate * drift) == pytest.approx(1.0, rel=0.05)


def test_input_that_never_rests_leaves_nothing_to_compare_with() -> None:
    compute = np.random.default_rng(1).normal(20, 3, STEPS) * MS
    assert _against_calm_steps(compute, 0.2 * compute) == 1.0


def test_few_calm_steps_tell_nothing() -> None:
    compute, estimate = steps(5.0, estimate=3.0)
    assert _against_calm_steps(compute[:60], estimate[:60]) == 1.0


def test_steps_that_differ_for_other_reasons_are_left_to_the_estimate() -> None:
    compute, estimate = steps(50.0, estimate=5.0)
    assert _against_calm_steps(compute, estimate) == 1.0
    scattered = steps(5.0, estimate=1.0)[0] + np.random.default_rng(1).normal(0, 15, STEPS) * MS
    assert _against_calm_steps(scattered, estimate / 5) == 1.0
