"""How programs that nobody tuned for are scored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.blind.score import score, summary

PS = 10**12


def said(primary: str = "input", *findings: dict[str, Any], **buckets_s: float) -> dict[str, Any]:
    buckets = {"input": 0.0, "host": 0.0, **buckets_s}
    return {
        "window": {"duration_ps": 10 * PS},
        "verdict": {"primary": primary, "status": "slow_always"},
        "findings": findings,
        "buckets_ps": {bucket: seconds * PS for bucket, seconds in buckets.items()},
        "causes_ps": {"compile.tracing": 1 * PS},
    }


def finding(id: str, low_s: float, high_s: float, severity: str = "act") -> dict[str, Any]:
    return {"id": id, "severity": severity, "gain_ps": {"low": low_s * PS, "high": high_s * PS}}


def truth(**changed: Any) -> dict[str, Any]:
    labels = {"primary": "input", "acceptable": ["input"], "expected_findings": ["ST001"]}
    rest = {"acceptable_findings": ["ST101"], "input_measured": True, "fixed": True}
    return {**labels, **rest, "before_any_run": labels, **changed}


def clocks(**changed: Any) -> dict[str, Any]:
    seen = {"epoch_s": 10.0, "steps": 10, "first_batch_s": 2.0, "in_train_s": 9.0, "spans": {}}
    return {**seen, "tracing_main_s": 1.5, "others_cpu": 0.0, **changed}


def test_a_primary_bucket_is_right_if_an_honest_judge_accepts_it() -> None:
    before = {"acceptable": ["input"], "expected_findings": []}
    corrected = truth(acceptable=["compile", "host"], before_any_run=before)
    judged = score("p", corrected, [said("host")], clocks(), None)
    assert judged.right and not judged.right_before


def test_an_act_finding_is_false_unless_it_was_expected_or_is_acceptable() -> None:
    found = [finding("ST001", 1, 2), finding("ST101", 1, 2), finding("ST014", 1, 2)]
    judged = score("p", truth(), [said("input", *found)], clocks(), None)
    assert judged.false_acts == ("ST014",)


def test_what_is_only_worth_considering_is_never_a_false_alarm() -> None:
    judged = score("p", truth(), [said("input", finding("ST014", 1, 2, "note"))], clocks(), None)
    assert judged.false_acts == () and judged.hit is False


@pytest.mark.parametrize(("fixed_s", "inside"), [(7.0, True), (8.2, True), (8.4, False)])
def test_a_gain_may_lie_outside_of_its_range_by_three_percent_of_the_epoch(
    fixed_s: float, inside: bool
) -> None:
    run = said("input", finding("ST001", 2, 4))
    judged = score("p", truth(), [run], clocks(), {"epoch_s": fixed_s})
    assert judged.gain_inside is inside


def test_input_is_what_steps_take_longer_than_with_a_ready_batch() -> None:
    judged = score("p", truth(), [said(input=3.0)], clocks(one_batch_in_train_s=5.0), None)
    # Nine steps after the first took 7.0 s, and 4.5 s with a ready batch.
    assert judged.errors["input"] == pytest.approx((3.0 - 2.5) / 10)


def test_graphs_that_a_callback_builds_count_as_the_host_s_or_not() -> None:
    span = {"n": 5, "s": 4.0, "tracing_s": 1.0, "on_training_thread": True}
    for host_s, error in ((3.0, 0.0), (4.0, 0.0), (2.0, -0.1), (4.5, 0.05)):
        judged = score("p", truth(), [said(host=host_s)], clocks(spans={"callback": span}), None)
        assert judged.errors["host"] == pytest.approx(error)


def test_a_log_without_a_timed_run_counts_as_wrong() -> None:
    assert "primary right 0" in summary([score("p", truth(), [], clocks(), None)])
