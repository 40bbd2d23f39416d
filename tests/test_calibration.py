"""Ranges of gains are adjusted by what was measured, and still fit on their page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stall_analyzer.diagnose import calibration
from stall_analyzer.diagnose.calibration import TABLE, Calibration, calibrated, calibration_of
from stall_analyzer.model.findings import Finding, Gain
from stall_analyzer.model.units import PS_PER_MS as MS
from tests.scenarios.gains.fit import (
    Measured,
    fitted,
    lookup,
    one_set_left_out,
    quality,
    read,
    untouched,
    with_rows,
)
from tests.test_plan import finding, signals

WIDER = {"ST": Calibration(1, 1.05, 50), "ST1": Calibration(0.9, 1.1, 20)}


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "TABLE", WIDER)


def retraced(low_ms: int, high_ms: int) -> Finding:
    made = finding("ST104", "compile", low_ms, high_ms)
    return replace(made, lost_ps=high_ms * MS)


# ---------------------------------------------------------------- what it does to a finding


def test_a_finding_has_its_own_row_or_its_familys_or_that_of_all(wider: None) -> None:
    assert calibration_of("ST104") == WIDER["ST1"]
    assert calibration_of("ST401") == WIDER["ST"]


def test_the_ends_of_a_range_are_moved_by_what_was_measured(wider: None) -> None:
    found = calibrated(retraced(1000, 2000), signals(compile__retracing=4000))
    assert found.gain == Gain(900 * MS, 2200 * MS)


def test_what_is_lost_is_never_less_than_what_may_be_saved(wider: None) -> None:
    assert calibrated(retraced(1000, 2000), signals(compile__retracing=4000)).lost_ps == 2200 * MS


def test_no_more_is_saved_than_the_blamed_buckets_took(wider: None) -> None:
    found = calibrated(retraced(1000, 2000), signals(compile__retracing=2100, host__python=500))
    assert (found.gain.high_ps, found.lost_ps) == (2100 * MS, 2100 * MS)


def test_a_finding_that_promises_nothing_still_promises_nothing(wider: None) -> None:
    nothing = finding("ST301", "numerics", 0, 0)
    assert calibrated(nothing, signals(compute__step=1000)) == nothing


# ---------------------------------------------------------------- where the table comes from


def test_the_table_is_what_the_measurements_say() -> None:
    assert fitted(read()) == TABLE


def test_of_sets_that_the_table_never_saw_nine_in_ten_gains_are_inside() -> None:
    unseen = quality([case for cases in one_set_left_out(read()).values() for case in cases])
    assert unseen.inside >= 0.9 * unseen.count


def test_calibrated_ranges_are_hardly_wider_than_predicted_ones() -> None:
    measured = read()
    calibrated_ = quality(with_rows(measured, lookup(TABLE)))
    assert calibrated_.wide <= 1.3 * quality(with_rows(measured, untouched)).wide


def gains(finding_id: str, *gained_s: float) -> list[Measured]:
    return [Measured("a", "p", finding_id, 10, 1, 2, 9, gained) for gained in gained_s]


def test_an_end_is_moved_outward_only() -> None:
    inside = fitted(gains("ST104", *[1.5] * 20))["ST104"]
    assert (inside.low, inside.high, inside.measured) == (1, 1, 20)


def test_few_gains_lean_on_those_of_the_family_and_make_no_row_of_their_own() -> None:
    table = fitted([*gains("ST104", *[2.4] * 5), *gains("ST106", *[2.4] * 4)])
    assert "ST106" not in table
    assert 1 < table["ST"].high < table["ST1"].high < table["ST104"].high < 1.2
