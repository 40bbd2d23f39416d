"""The scorer counts every second that is in the wrong place, once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.score import Score, compare, passed, right_primary

TRUTH = {
    "name": "case",
    "mode": "graph",
    "expected_primary": "input",
    "epoch_start_unix_ns": 1_000_000_000,
    "epoch_end_unix_ns": 3_000_000_000,
    "buckets_s": {"input": 1.5, "compute": 0.5},
}


def _run(seconds: dict[str, float], start_ns: int = 1_000_000_000) -> dict[str, Any]:
    buckets = {bucket: round(value * 10**12) for bucket, value in seconds.items()}
    return {
        "window": {"start_unix_ns": start_ns, "duration_ps": sum(buckets.values())},
        "verdict": {"primary": "input"},
        "buckets_ps": buckets,
    }


def _seconds(run: dict[str, Any]) -> dict[str, float]:
    return {bucket: ps / 10**12 for bucket, ps in run["buckets_ps"].items()}


def _score(seconds: dict[str, float], start_ns: int = 1_000_000_000) -> Score:
    return compare(TRUTH, _run(seconds, start_ns))


def test_the_right_answer_has_no_error() -> None:
    score = _score({"input": 1.5, "compute": 0.5})
    assert score.misattributed == 0
    assert (score.begin_error_ms, score.end_error_ms) == (0, 0)
    assert score.passed


def test_a_second_in_the_wrong_bucket_counts_once() -> None:
    assert _score({"input": 1.4, "compute": 0.6}).misattributed == pytest.approx(0.05)


def test_unknown_time_is_in_the_wrong_place() -> None:
    score = _score({"input": 1.4, "compute": 0.5, "unknown": 0.1})
    assert score.misattributed == pytest.approx(0.05)


def test_a_window_that_misses_its_begin_is_an_error() -> None:
    score = _score({"input": 1.4, "compute": 0.5}, start_ns=1_100_000_000)
    assert score.misattributed == pytest.approx(0.025)
    assert score.begin_error_ms == pytest.approx(100)
    assert score.end_error_ms == pytest.approx(0)


def test_a_ledger_that_does_not_sum_fails() -> None:
    run = _run({"input": 1.5, "compute": 0.5})
    run["window"]["duration_ps"] += 1
    score = compare(TRUTH, run)
    assert not score.ledger_exact
    assert not score.passed


def test_logging_counts_as_host_only_where_no_clock_told_them_apart() -> None:
    run = _run({"input": 1.0, "compute": 0.5, "host": 0.2, "profiler": 0.3})
    run["causes_ps"] = {"profiler.logging": 3 * 10**11, "host.python": 17 * 10**11}
    old = {**TRUTH, "buckets_s": {"input": 1.0, "compute": 0.5, "host": 0.5}}
    new = {**TRUTH, "buckets_s": _seconds(run), "logging_ns": [[0, 300_000_000]]}
    assert compare(old, run).misattributed == pytest.approx(0)
    assert compare(new, run).misattributed == pytest.approx(0)
    assert compare({**old, "logging_ns": []}, run).misattributed == pytest.approx(0.15)


def test_all_must_pass_and_the_median_must_be_small() -> None:
    good, middling = (
        _score({"input": 1.5, "compute": 0.5}),
        _score({"input": 1.47, "compute": 0.53}),
    )
    assert middling.passed  # 1.5% is within the limit of one scenario
    assert passed([good])
    assert not passed([middling])  # and beyond the limit of the median


@pytest.mark.parametrize(
    ("meant", "seconds", "right"),
    [
        ("input", {"input": 1.5, "compute": 0.5}, "input"),
        ("input", {"input": 0.7, "compile": 1.2, "compute": 0.1}, "compile"),  # a loaded machine
        ("input", {"input": 0.70, "compile": 0.72, "compute": 0.58}, "input"),  # a tie
        ("compute", {"compile": 0.3, "compute": 1.7}, "compute"),
        ("compute", {"compile": 0.45, "compute": 1.55}, "compute"),
        ("compute", {"compile": 0.9, "compute": 1.1}, "compile"),
        ("compute", {"host": 0.45, "compute": 1.55}, "host"),
        ("numerics", {"numerics": 0.2, "compile": 1.8}, "numerics"),
    ],
)
def test_the_right_primary_is_what_really_cost_most(
    meant: str, seconds: dict[str, float], right: str
) -> None:
    assert right_primary({**TRUTH, "expected_primary": meant, "buckets_s": seconds}) == right
