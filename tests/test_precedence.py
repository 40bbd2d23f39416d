"""Which finding is kept if two would say the same."""

from __future__ import annotations

import pytest

from stall_analyzer.detectors.registry import DETECTORS
from stall_analyzer.diagnose.precedence import (
    LIMITS,
    SILENCED_BY,
    without_opposed,
    without_silenced,
)
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.kinds import Bucket, Knob, Severity


def heard(*ids: str) -> list[str]:
    finding = Finding("act", "a title", "an explanation", Change("a change"))
    return list(without_silenced(dict.fromkeys(ids, finding)))


@pytest.mark.parametrize(
    ("silenced", "by"), [(id, other) for id, others in SILENCED_BY.items() for other in others]
)
def test_a_finding_is_silent_next_to_the_one_that_names_its_reason(silenced: str, by: str) -> None:
    assert heard(silenced) == [silenced]
    assert heard(silenced, by) == [by]


def test_one_that_is_silenced_itself_silences_too() -> None:
    assert heard("ST302", "ST303", "ST306") == ["ST303"]


def test_other_findings_are_left_alone() -> None:
    assert heard("ST001", "ST303", "ST304") == ["ST001", "ST303", "ST304"]


def test_the_table_names_detectors_and_silences_in_no_circle() -> None:
    ids = {detector.id for detector in DETECTORS}
    assert ids >= LIMITS
    assert ids >= SILENCED_BY.keys() | {other for by in SILENCED_BY.values() for other in by}
    assert all(heard(silenced, *by) for silenced, by in SILENCED_BY.items())


def turning(
    id: str,
    knob: Knob,
    to: str,
    *,
    severity: Severity = "consider",
    bucket: Bucket = "memory",
    lost_ps: int = 0,
) -> Finding:
    change = Change("a change", turns=(Turn(knob, to),))
    return Finding(severity, "a title", "why", change, id=id, bucket=bucket, lost_ps=lost_ps)


def left(*findings: Finding) -> list[str]:
    return [finding.id for finding in without_opposed(findings)]


def test_findings_that_turn_a_knob_the_same_way_are_all_kept() -> None:
    one, other = (turning(id, "batch size", "down") for id in ("ST201", "ST203"))
    assert left(one, other, turning("ST206", "XLA", "on")) == ["ST201", "ST203", "ST206"]


def test_what_the_machine_cannot_give_is_not_asked_for() -> None:
    larger = turning("ST206", "batch size", "up", severity="act", lost_ps=9)
    smaller = turning("ST203", "batch size", "down")
    assert left(larger, smaller) == ["ST203"]


def test_of_two_opposed_findings_the_more_urgent_is_kept_and_then_the_one_about_learning() -> None:
    low = turning("ST304", "learning rate", "0.001", severity="act", bucket="numerics")
    dead = turning("ST312", "learning rate", "1e-07", bucket="numerics")
    table = turning("ST206", "learning rate", "0.1", bucket="compute", lost_ps=9)
    assert left(dead, low) == ["ST304"]
    assert left(table, dead) == ["ST312"]


def test_checks_for_nan_stay_where_a_nan_is_to_be_found() -> None:
    cost = turning("ST311", "checks for NaN", "off", bucket="numerics", lost_ps=9)
    printed = turning("ST315", "checks for NaN", "on", severity="act", bucket="numerics")
    assert left(cost, printed) == ["ST315"]


def test_of_two_similar_findings_the_costlier_is_kept_in_the_given_order() -> None:
    off = turning("ST105", "XLA", "off", bucket="compile", lost_ps=2)
    on = turning("ST210", "XLA", "on", lost_ps=3)
    other = turning("ST001", "cache", "in memory")
    assert left(off, on, other) == ["ST210", "ST001"]
