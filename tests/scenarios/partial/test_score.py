from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.scenarios.partial.cut import LeftOut
from tests.scenarios.partial.programs import known_truth, truth_from_ledger
from tests.scenarios.partial.score import (
    Case,
    Said,
    Summary,
    Truth,
    missed_targets,
    places_by_bucket,
    rows,
    said_in,
    summary,
)
from tests.scenarios.partial.split import half_of

SECOND = 10**12
TRUTH = Truth("input", {"input": 6.0, "compute": 3.0, "host": 1.0}, 10.0)
LIKELY = {"input": 5.0, "compute": 4.0, "host": 1.0, "unknown": 0.0}
RANGES = {"input": (4.0, 5.98), "compute": (3.5, 4.5), "host": (1.0, 1.0)}
SAID = Said("input", (), "Probably slow in every epoch.", LIKELY, RANGES)
CASE = Case("program", "development", "one_batch", TRUTH, SAID)

RUN: dict[str, Any] = {
    "window": {"duration_ps": 10 * SECOND, "covered_ps": 9 * SECOND},
    "verdict": {"primary": "input", "sentence": "Slow in every epoch."},
    "buckets_ps": {"input": 1 * SECOND, "unknown": 9 * SECOND},
}


def said(primary: str, *candidates: str, sentence: str = "") -> Case:
    return replace(CASE, said=Said(primary, candidates, sentence, LIKELY))


def test_a_second_that_moved_to_another_bucket_is_misattributed_once() -> None:
    assert CASE.misattributed == pytest.approx(0.1)


def test_without_an_answer_all_of_the_epoch_is_misattributed() -> None:
    assert replace(CASE, said=Said()).misattributed == 1.0
    assert replace(CASE, said=Said(likely_s={"input": 0.0})).misattributed == 1.0


def test_the_truth_may_lie_outside_of_an_interval_by_half_a_percent_of_the_epoch() -> None:
    assert CASE.places == {"input": "inside", "compute": "below", "host": "inside"}


def test_small_buckets_and_unknown_are_not_asked_for_their_interval() -> None:
    likely = {"input": 6.0, "compute": 3.0, "host": 1.0, "memory": 0.09, "unknown": 2.0}
    assert set(replace(CASE, said=Said(likely_s=likely)).places) == {"input", "compute", "host"}


def test_the_right_bucket_counts_as_listed_in_a_list_of_three_but_not_of_four() -> None:
    assert said("host", "host", "compute", "input").right_or_candidate
    assert not said("host", "host", "compute", "memory", "input").right_or_candidate
    assert not said("host", "host", "compute").right_or_candidate
    assert said("input").right_or_candidate


def test_only_a_wrong_bucket_makes_a_probably_wrong() -> None:
    assert said("host", sentence="Probably slow once.").wrongly_probable
    assert not said("host", sentence="Slow once.").wrongly_probable
    assert not CASE.wrongly_probable


def test_an_estimate_goes_before_the_exact_ledger() -> None:
    ranges = {"input": {"low": SECOND, "high": 2 * SECOND}}
    estimate = {"buckets_ps": {"input": 2 * SECOND}, "ranges_ps": ranges}
    verdict = {**RUN["verdict"], "candidates": ["input", "host"]}
    answer = said_in({**RUN, "estimate": estimate, "verdict": verdict})
    assert answer.likely_s == {"input": 2.0}
    assert answer.range_s("input") == (1.0, 2.0)
    assert answer.candidates == ("input", "host")


def test_a_ledger_without_an_estimate_claims_to_be_exact() -> None:
    answer = said_in({**RUN, "estimate": None})
    assert answer.range_s("unknown") == (9.0, 9.0)
    assert answer.range_s("host") == (0.0, 0.0)


def test_a_summary_counts_cases_and_intervals() -> None:
    wrong = said("unknown", sentence="Probably unknown.")
    result = summary([CASE] * 9 + [wrong])
    assert (result.cases, result.right, result.unknown) == (10, 0.9, 0.1)
    assert result.wrongly_probable == 0.1
    assert result.covered == pytest.approx((9 * 2 + 1) / 30)
    assert result.misattributed_90th == pytest.approx(0.1)
    assert rows({"one_batch": result})[1][:3] == ["one_batch", "10", "90.0%"]


def test_targets_are_missed_on_either_side_and_by_ten_batches_that_help_nothing() -> None:
    good = Summary(40, 0.9, 0.95, 0.0, 0.04, 0.14, 0.9, 0.0)
    met = {"one_batch": good, "ten_batches": good, "events_only": good}
    assert missed_targets(met) == []
    too_wide = {**met, "one_batch": replace(good, covered=0.99)}
    assert missed_targets(too_wide) == ["one_batch: in interval 99.0%, not 85% to 95%"]
    no_better = {**met, "ten_batches": replace(good, misattributed_median=0.05)}
    assert missed_targets(no_better) == ["ten_batches: worse than one_batch"]


def test_it_is_counted_on_which_side_the_truth_of_each_bucket_lies() -> None:
    assert places_by_bucket([CASE, CASE])["compute"] == {"below": 2}


def test_the_line_of_a_case_shows_truth_likely_and_interval() -> None:
    assert "input 6.000/5.000[4.000–5.980]" in CASE.line()


def test_a_full_log_is_the_truth_if_its_trace_covers_the_epoch() -> None:
    assert truth_from_ledger(RUN) == Truth("input", {"input": 1.0, "unknown": 9.0}, 10.0)
    with pytest.raises(LeftOut, match="only 50%"):
        truth_from_ledger({**RUN, "window": {"duration_ps": 2, "covered_ps": 1}})


def test_a_scenario_knows_its_truth_by_its_own_clocks() -> None:
    content = {
        "epoch_start_unix_ns": 0,
        "epoch_end_unix_ns": 10 * 10**9,
        "expected_primary": "input",
        "buckets_s": TRUTH.buckets_s,
    }
    assert known_truth(content) == TRUTH


def test_the_halves_are_about_equal_and_never_change() -> None:
    names = [f"program_{number}" for number in range(1000)]
    assert 450 < sum(half_of(name) == "aside" for name in names) < 550
    assert [half_of(name) for name in names[:4]] == ["aside", "aside", "development", "aside"]
