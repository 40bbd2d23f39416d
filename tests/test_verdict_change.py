"""A verdict that has changed says why."""

from __future__ import annotations

from typing import Any

import pytest

from stall_analyzer.api import analyze
from stall_analyzer.report.facts import Facts, facts_of
from stall_analyzer.report.verdict_change import verdict_change
from tests.plugin.boards import SAMPLES

NOW_S = 1.0


@pytest.fixture(scope="module")
def real() -> Facts:
    (entry,) = analyze(str(SAMPLES / "numerics_nan")).document["runs"]
    return facts_of(entry)


def changed(before: Facts, **fields: Any) -> str:
    found = verdict_change(before, {**before, **fields}, NOW_S)  # type: ignore[typeddict-item]
    assert found is not None
    assert found["sentence"] == before["sentence"]
    assert found["status"] == before["status"]
    return found["why"]


def test_figures_that_change_are_not_a_different_verdict(real: Facts) -> None:
    after: Facts = {**real, "steps": real["steps"] + 1, "sentence": "in other words"}
    assert verdict_change(real, after, NOW_S) is None


def test_an_epoch_that_ends(real: Facts) -> None:
    running: Facts = {**real, "status": "running", "steps": 1}
    assert changed(running, status="slow_once", duration_ps=14 * 10**12, steps=56) == (
        "the first epoch ended after 14.0 s; 55 more steps were seen."
    )


def test_a_process_that_ends_or_hangs(real: Facts) -> None:
    assert changed(real, status="dead") == "the process has ended."
    assert changed(real, status="stuck") == "steps no longer finish."


def test_a_loss_that_falls_after_all(real: Facts) -> None:
    assert real["status"] == "learning_nothing"
    assert (
        changed(real, status="healthy") == "the loss no longer shows that nothing is being learned."
    )


def test_time_that_goes_elsewhere(real: Facts) -> None:
    spent = {**real["buckets_ps"], "input": real["duration_ps"] // 2}
    share = f"{100 * real['buckets_ps']['input'] // real['duration_ps'] + 1}"
    said = changed(real, primary="input", buckets_ps=spent)
    assert said.startswith("input takes 50% of the time now; ")
    assert share in said


def test_what_else_there_is_to_judge_by(real: Facts) -> None:
    before: Facts = {**real, "findings": [], "sessions": [], "status": "unknown"}
    said = changed(before, status="slow_always", findings=real["findings"], sessions=["one"])
    assert said.startswith("a profile was saved; found since: ST")


def test_the_same_records_may_mean_something_else_later(real: Facts) -> None:
    assert changed(real, candidates=["input", "host"]) == (
        "nothing new was recorded, but time has passed."
    )
