"""Functions on columns give the same answers as numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stall_analyzer.model.columns import distinct, is_in, median, percentile, without


@pytest.mark.parametrize(
    "values", [[3], [1, 2], [5, 1, 4], [2.5, 1.0, 9.0, 4.0], [np.inf, 1.0, 2.0]]
)
def test_a_median_is_that_of_numpy(values: list[float]) -> None:
    assert median(values) == np.median(values)


@pytest.mark.parametrize("values", [[], [1.0, np.nan, 2.0]])
def test_there_is_no_median_of_nothing_or_of_nan(values: list[float]) -> None:
    assert math.isnan(median(values))


@pytest.mark.parametrize("percent", [0, 5, 25, 37.5, 50, 62, 75, 99, 100])
@pytest.mark.parametrize("values", [[7], [3, 1], [10**15 + 1, 4, 10**12], [0.1, 0.7, 0.2, 1e9]])
def test_a_percentile_is_that_of_numpy(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == np.percentile(values, percent)


def test_values_are_distinct_and_in_order() -> None:
    found = distinct(np.array([3, 1, 3]), np.array([2, 1]))
    assert found.tolist() == [1, 2, 3]


def test_values_without_others() -> None:
    assert without(np.array([4, 2, 4, 1]), np.array([1, 9])).tolist() == [2, 4]


@pytest.mark.parametrize("wanted", [[], [2], [5, 1], [0, 9]])
def test_membership_is_that_of_numpy(wanted: list[int]) -> None:
    values = np.array([1, 2, 5, 2, 7])
    assert is_in(values, wanted).tolist() == np.isin(values, wanted).tolist()


def test_a_median_of_numbers_that_no_column_can_hold_is_near() -> None:
    assert median((18_446_745 * 10**12,)) == pytest.approx(18_446_745 * 10**12)
