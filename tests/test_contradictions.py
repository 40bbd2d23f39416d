"""No page contradicts itself: tests each rule on a page made up to break it, and all on real
ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.discover.discover import discover
from stall_analyzer.outcome import analyze_one, failure
from stall_analyzer.report.document import run_document
from tests.contradictions import contradictions, main, report
from tests.corpus import CORPUS
from tests.real_documents import MS, ROOT, SAMPLES, analyzed, document, sample
from tests.stuck_job import write_job
from tests.test_sampling import sampled_report

S = 1000 * MS


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_no_sample_contradicts_itself(folder: Path) -> None:
    assert contradictions(sample(folder.name)) == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the public logs are not beside this repository")
@pytest.mark.parametrize("folder", sorted(CORPUS.glob("L*")), ids=lambda path: str(path.name[:3]))
def test_no_public_log_contradicts_itself(folder: Path) -> None:
    for run in discover([str(folder)]).runs:
        assert contradictions(analyze_one(run).entry) == []


def test_neither_do_a_stuck_job_and_a_run_that_could_not_be_analyzed(tmp_path: Path) -> None:
    job = write_job(tmp_path / "stuck")
    assert contradictions(run_document(analyzed(job))) == []
    (run,) = discover([str(job)]).runs
    assert contradictions(failure(run, "its process was killed").entry) == []


# ---------------------------------------------------------------- made-up contradictions


def page(**changes: Any) -> Any:
    """A page without contradictions, of an epoch of 10 s that waits 6 s for input."""
    causes = {"input.wait": 6 * S, "compile.tracing": 1 * S, "compute.step": 3 * S}
    buckets = dict.fromkeys(sample("healthy")["buckets_ps"], 0)
    buckets |= {"input": 6 * S, "compile": 1 * S, "compute": 3 * S}
    verdict = {
        "status": "slow_always",
        "primary": "input",
        "sentence": "Slow in every epoch: 6.00 s of 10.0 s (60%) of the first epoch went to "
        "input. The Python function in Map takes 80.0 ms a batch.",
        "confidence": 0.9,
        "host": None,
        "candidates": [],
    }
    return {
        "window": {"duration_ps": 10 * S},
        "verdict": verdict,
        "buckets_ps": buckets,
        "causes_ps": causes,
        "one_time_ps": 1 * S,
        "recurring_ps": 9 * S,
        "estimate": None,
        "later_epochs": {"count": 3, "median_ps": 9 * S},
        "steps": [{"phase": "training"}] * 60,
        "findings": [finding()],
        "plan": {
            "findings": ["ST001"],
            "first_epoch_ps": {"now": 10 * S, "low": 5 * S, "high": 6 * S},
            "later_epoch_ps": {"now": 9 * S, "low": 4 * S, "high": 5 * S},
        },
        "host_ledgers": [],
        "cluster": None,
    } | changes


def finding(id: str = "ST001", turns: dict[str, str] | None = None, **changes: Any) -> Any:
    return {
        "id": id,
        "name": "python_function_in_map",
        "bucket": "input",
        "blames": ["input"],
        "severity": "act",
        "title": "The Python function in Map takes 80.0 ms a batch",
        "explanation": "Between 60 steps, training waited.",
        "lost_ps": 6 * S,
        "gain_ps": {"low": 4 * S, "high": 5 * S},
        "later_gain_ps": {"low": 4 * S, "high": 5 * S},
        "confidence": 0.9,
        "change": {"turns": turns or {}},
        "evidence": [{}] * 8,
    } | changes


def estimated(**changes: Any) -> Any:
    exact = page()
    spent = exact["buckets_ps"]
    part = {
        "buckets_ps": spent,
        "causes_ps": exact["causes_ps"],
        "one_time_ps": 1 * S,
        "recurring_ps": 9 * S,
        "ranges_ps": {bucket: {"low": ps, "high": ps} for bucket, ps in spent.items()},
        "profiled_steps": 20,
        "steps": 60,
    }
    return page(estimate=part | changes)


def said(status: str, sentence: str = "", **changes: Any) -> Any:
    return page()["verdict"] | {"status": status, "sentence": sentence} | changes


def test_a_page_that_holds_together_is_left_alone() -> None:
    assert contradictions(page()) == []
    assert contradictions(estimated()) == []


def range_of(low: int, high: int) -> dict[str, int]:
    return {"low": low * S, "high": high * S}


NOTHING_SPENT = dict.fromkeys(page()["buckets_ps"], 0)
INPUT_UNSURE = estimated()["estimate"]["ranges_ps"] | {"input": range_of(5, 7)}
INPUT_OUTSIDE = estimated()["estimate"]["ranges_ps"] | {"input": range_of(7, 8)}
BROKEN: dict[str, tuple[Callable[[], Any], str]] = {
    "no confidence is above 1": (
        lambda: page(findings=[finding(confidence=1.2)]),
        "ST001 has a confidence of 1.2",
    ),
    "an empty window has no shares": (
        lambda: page(window={"duration_ps": 0}, verdict=said("unknown", "0% of it")),
        "a window of 0 has shares",
    ),
    "an empty window has nothing to save": (
        lambda: page(window={"duration_ps": 0}),
        "a window of 0 has time to save",
    ),
    "buckets sum to the window": (
        lambda: page(buckets_ps=NOTHING_SPENT),
        "the buckets of the ledger do not sum to the window",
    ),
    "causes sum to their bucket": (
        lambda: estimated(causes_ps={"input.wait": 10 * S}),
        "the causes of input in the estimate do not sum to it",
    ),
    "once and again are all": (
        lambda: page(one_time_ps=5 * S),
        "what happens once and what recurs of the ledger do not sum to the window",
    ),
    "the likely value lies in its range": (
        lambda: estimated(ranges_ps=INPUT_OUTSIDE),
        "the likely input lies outside of its range",
    ),
    "an estimate has at least what was traced": (
        lambda: estimated(ranges_ps=INPUT_UNSURE),
        "the estimate may have less input than was traced (6.00 s)",
    ),
    "a cost is a part of what it blames": (
        lambda: page(findings=[finding(lost_ps=7 * S)]),
        "ST001 costs 7.00 s, but input took 6.00 s",
    ),
    "no more is won than was lost": (
        lambda: page(findings=[finding(lost_ps=4 * S)]),
        "ST001 saves 5.00 s of 4.00 s lost",
    ),
    "a gain of every epoch fits into a later one": (
        lambda: page(later_epochs={"count": 1, "median_ps": 3 * S}),
        "ST001 saves 5.00 s in every epoch, one takes 3.00 s",
    ),
    "without a later epoch, into what comes again": (
        lambda: page(
            later_epochs={"count": 0, "median_ps": None}, one_time_ps=6 * S, recurring_ps=4 * S
        ),
        "ST001 saves 5.00 s in every epoch, one takes 4.00 s",
    ),
    "one wait is not every epoch's": (
        lambda: page(findings=[finding(evidence=[{}])]),
        "ST001 saves in every epoch what was seen once or twice",
    ),
    "nor are two": (
        lambda: page(findings=[finding(title="Fill waits for memory: 1.50 s in 2 waits")]),
        "ST001 saves in every epoch what was seen once or twice",
    ),
    "one knob has one value": (
        lambda: page(
            findings=[
                finding(turns={"learning rate": "1e+03"}),
                finding("ST303", turns={"learning rate": "0.01"}),
            ]
        ),
        "ST001 and ST303 turn the learning rate 1e+03 and 0.01",
    ),
    "steps are listed once": (
        lambda: estimated(steps=59),
        "60 training steps are listed, the estimate counts 59",
    ),
    "steps are counted alike": (
        lambda: page(findings=[finding(title="A callback runs in 12 of 90 steps")]),
        "ST001 speaks of 90 steps; training steps listed: 60",
    ),
    "validation comes after all steps": (
        lambda: estimated(steps=90)
        | {"findings": [finding(explanation="After 60 training steps came 9.")]},
        "ST001 ends training after 60 steps, the estimate after 90",
    ),
    "a plan is made of findings": (
        lambda: page(findings=[finding(severity="note")]),
        "the plan has ST001, which is no finding to act on",
    ),
    "a plan starts from the window": (
        lambda: page(plan=page()["plan"] | {"first_epoch_ps": {"now": 9 * S, **range_of(5, 6)}}),
        "a first epoch takes 10.0 s, in the plan 9.00 s",
    ),
    "a forecast is that of its findings": (
        lambda: page(plan=page()["plan"] | {"first_epoch_ps": {"now": 10 * S, **range_of(2, 6)}}),
        "the forecast of the first epoch saves more than its findings: 5.00 s",
    ),
    "a forecast is in order": (
        lambda: page(plan=page()["plan"] | {"first_epoch_ps": {"now": 10 * S, **range_of(7, 6)}}),
        "the forecast of the first epoch is not in order",
    ),
    "plan and page know the same later epochs": (
        lambda: page(plan=page()["plan"] | {"later_epoch_ps": None}),
        "the plan and the run do not know the same of later epochs",
    ),
    "healthy is nothing to act on": (
        lambda: page(verdict=said("healthy")),
        "healthy, but ST001 is to be acted on",
    ),
    "a finished epoch is not running": (
        lambda: page(verdict=said("running")),
        "the first epoch is still running, but later ones are over",
    ),
    "nor is it known how long a running one takes": (
        lambda: page(verdict=said("running", "The first epoch took 4.00 s.")),
        "the first epoch is still running, but it is said how long it took",
    ),
    "nothing is healthy that was not seen": (
        lambda: page(verdict=said("healthy"), buckets_ps=NOTHING_SPENT | {"unknown": 10 * S}),
        "healthy, but more of the epoch is unknown than was seen to compute",
    ),
    "the primary bucket is a candidate": (
        lambda: page(verdict=said("slow_always", candidates=["host", "compile"])),
        "input is primary and no candidate",
    ),
    "learning nothing has a reason": (
        lambda: page(verdict=said("learning_nothing")),
        "learning nothing, but no finding says why",
    ),
    "what passes is not what stays": (
        lambda: page(verdict=said("slow_once", "Slow once, not again.")),
        "slow once, but ST001 saves 5.00 s in every epoch",
    ),
    "what is slow always comes again": (
        lambda: page(findings=[finding(later_gain_ps=range_of(0, 0))]),
        "slow always, but ST001 saves nothing in later epochs",
    ),
    "what happens once is not slow always": (
        lambda: page(one_time_ps=8 * S, recurring_ps=2 * S),
        "slow always, but only 2.00 s come again",
    ),
    "what comes again fits into a later epoch": (
        lambda: page(later_epochs={"count": 1, "median_ps": 3 * S}),
        "5.00 s of input come again, later epochs 3.00 s",
    ),
    "once and a later epoch are the first": (
        lambda: page(one_time_ps=5 * S, recurring_ps=5 * S),
        "5.00 s come once and a later epoch takes 9.00 s, the first 10.0 s",
    ),
    "the verdict's bucket is that of the bar": (
        lambda: page(verdict=said("slow_always", "4.00 s of 10.0 s (40%) of the first epoch went "
                                  "to input.")),
        "the verdict gives input 4.00 s (40%), the bar 6.00 s",
    ),
    "candidates have the ranges of the page": (
        lambda: estimated() | {"verdict": said("slow_always", "Input or host. Possible times: "
                                               "input 1–2 s.", candidates=["input"])},
        "the verdict does not give input its range, 6.00 s",
    ),
    "a healthy share is that of the bar": (
        lambda: page(verdict=said("healthy", "Healthy: 80% of the first epoch (10.0 s) is the "
                                  "model's own computation.")),
        "the verdict computes for 80%, the bar for 30%",
    ),
    "the verdict's epoch is the window": (
        lambda: page(verdict=said("slow_always", "6.00 s of 12.0 s (50%) of the first epoch went "
                                  "to input.")),
        "the verdict's epoch takes 12.0 s, the window 10.0 s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", BROKEN)
def test_a_page_that_breaks_a_rule_is_caught(rule: str) -> None:
    made, expected = BROKEN[rule]
    assert expected in contradictions(made())


def test_a_reader_who_is_told_what_stays_may_be_told_that_the_rest_passes() -> None:
    stays = "Slow once: tracing. But input takes 5.00 s in every epoch."
    assert contradictions(page(verdict=said("slow_once", stays))) == []


def test_a_validation_comes_in_every_epoch_although_it_is_seen_once() -> None:
    once = finding(name="validation_in_epoch", evidence=[{}])
    assert contradictions(page(findings=[once])) == []


def test_others_wait_for_a_straggler_whose_own_wait_is_short() -> None:
    late = finding("ST502", bucket="communication", blames=["communication"], lost_ps=5 * S)
    waits = NOTHING_SPENT | {"communication": 5 * S}
    assert "ST502 costs 5.00 s" in " ".join(contradictions(page(findings=[late])))
    hosts = [{"buckets_ps": waits}]
    assert "ST502 costs" not in " ".join(contradictions(page(findings=[late], host_ledgers=hosts)))


# ---------------------------------------------------------------- the command


def test_the_command_reads_log_directories_and_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "report.json"
    bad = sample("healthy", one_time_ps=0)
    written.write_text(json.dumps(document(bad)))
    assert main([str(ROOT / "sample_logs" / "healthy")]) == 0
    assert capsys.readouterr().out == "contradictions: 0\n"
    assert main([str(written)]) == 1
    assert "healthy#1: what happens once and what recurs" in capsys.readouterr().out


def test_a_report_counts_and_names_them() -> None:
    assert report({"a": [], "b": ["x", "y"]}) == "contradictions: 2\n  b: x\n  b: y"


def test_a_sampled_epoch_does_not_contradict_itself(tmp_path: Path) -> None:
    assert contradictions(run_document(sampled_report(tmp_path))) == []
