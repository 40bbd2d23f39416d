"""Which cause is shown instead of which symptom."""

from __future__ import annotations

import pytest

from stall_analyzer.detectors.registry import DETECTORS
from stall_analyzer.diagnose.causes import EXPLAINED_BY, weighed
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.kinds import Severity


def finding(severity: Severity = "act", title: str = "a title") -> Finding:
    return Finding(severity, title, "Why.", Change("a change"))


@pytest.mark.parametrize(
    ("symptom", "cause"), [(id, cause) for id, causes in EXPLAINED_BY.items() for cause in causes]
)
def test_a_cause_is_shown_instead_of_what_it_explains(symptom: str, cause: str) -> None:
    assert list(weighed({symptom: finding(), cause: finding()})) == [cause]


def test_a_note_about_the_model_does_not_explain_a_loss_that_stands_still() -> None:
    assert list(weighed({"ST305": finding(), "ST326": finding("note")})) == ["ST305", "ST326"]


def test_a_likely_cause_comes_with_the_experiment_that_decides() -> None:
    kept = weighed({"ST305": finding(), "ST326": finding()})
    assert "single batch of 32 examples" in kept["ST326"].change.text


def test_a_measured_cause_needs_no_experiment() -> None:
    kept = weighed({"ST305": finding(), "ST317": finding(), "ST326": finding()})
    assert list(kept) == ["ST317"]
    assert kept["ST317"] == finding()


def test_if_two_causes_remain_both_are_shown() -> None:
    found = {"ST305": finding(), "ST323": finding(), "ST326": finding(title="It is linear")}
    first = weighed(found)["ST323"]
    assert "This would have the same effect: It is linear." in first.explanation
    assert "before and after each change" in first.change.text


def test_nothing_explains_itself_in_a_circle() -> None:
    for id in EXPLAINED_BY:
        seen, ahead = set[str](), [id]
        while ahead:
            causes = EXPLAINED_BY.get(ahead.pop(), ())
            assert id not in causes
            ahead += [cause for cause in causes if cause not in seen]
            seen |= set(causes)


def test_the_table_names_detectors_or_those_that_a_capture_will_have() -> None:
    ids = {detector.id for detector in DETECTORS} | {f"ST{number}" for number in range(316, 323)}
    assert ids >= EXPLAINED_BY.keys() | {cause for by in EXPLAINED_BY.values() for cause in by}
