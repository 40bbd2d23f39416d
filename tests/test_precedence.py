"""Which finding stands where two would say the same."""

from __future__ import annotations

import pytest

from stall_analyzer.detectors.registry import DETECTORS
from stall_analyzer.diagnose.precedence import SILENCED_BY, without_silenced
from stall_analyzer.model.findings import Change, Finding


def heard(*ids: str) -> list[str]:
    finding = Finding("act", "a title", "an explanation", Change("a change"))
    return list(without_silenced(dict.fromkeys(ids, finding)))


@pytest.mark.parametrize(
    ("silenced", "by"), [(id, other) for id, others in SILENCED_BY.items() for other in others]
)
def test_a_finding_is_silent_beside_the_one_that_names_its_reason(silenced: str, by: str) -> None:
    assert heard(silenced) == [silenced]
    assert heard(silenced, by) == [by]


def test_one_that_is_silenced_itself_silences_too() -> None:
    assert heard("ST302", "ST303", "ST306") == ["ST303"]


def test_other_findings_are_left_alone() -> None:
    assert heard("ST001", "ST303", "ST304") == ["ST001", "ST303", "ST304"]


def test_the_table_names_detectors_and_silences_in_no_circle() -> None:
    ids = {detector.id for detector in DETECTORS}
    assert ids >= SILENCED_BY.keys() | {other for by in SILENCED_BY.values() for other in by}
    assert all(heard(silenced, *by) for silenced, by in SILENCED_BY.items())
