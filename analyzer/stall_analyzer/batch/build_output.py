"""A batch for builds and reviews: GitHub annotations, SARIF, JUnit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stall_analyzer.batch.baseline import Changed
from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.judge import Judge
from stall_analyzer.batch.limits import EPOCH, STATUS, Excess, Limit
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.report import github, junit, sarif
from stall_analyzer.report.document import document
from stall_analyzer.report.facts import shown_name
from stall_analyzer.report.problems import (
    OVER_LIMIT,
    WORSE,
    Check,
    Problem,
    RunProblems,
    checkout,
    problems_of,
    undecided,
    unreadable,
)

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ReportEntry

ALL_PATHS = "all paths"
BASELINE = "baseline"
NOT_MEASURED = "It is not known how long the first epoch took."
NOT_DIVIDED = "It is not known what the first epoch was spent on."
NO_VERDICT = "The verdict is unknown."
NOT_IN_BASELINE = "This run is not in the baseline."


def as_github(batch: Batch, judge: Judge) -> Iterator[str]:
    return github.render(_problems(batch, judge))


def as_sarif(batch: Batch, judge: Judge) -> Iterator[str]:
    yield sarif.render(_problems(batch, judge))


def as_junit(batch: Batch, judge: Judge) -> Iterator[str]:
    return junit.render(_runs(batch, judge))


def _problems(batch: Batch, judge: Judge) -> Iterator[Problem]:
    for run in _runs(batch, judge):
        yield from run.all_problems


def _runs(batch: Batch, judge: Judge) -> Iterator[RunProblems]:
    excesses = {(one.run, one.attempt, one.limit): one for one in judge.limits.exceeded}
    worse = (
        {(one.run, one.attempt): one for one in judge.comparison.worse} if judge.comparison else {}
    )
    for entry in batch.entries():
        name = shown_name(entry["run"], entry["attempt"], entry["folder"])
        identity = entry["run"], entry["attempt"]
        took_s = entry["window"]["duration_ps"] / PS_PER_S
        checks = [
            _limit_check(name, limit, excesses.get((*identity, limit.text)), entry)
            for limit in judge.limits.limits
        ]
        if judge.comparison:
            known = identity in judge.comparison.former
            checks.append(_baseline_check(name, worse.get(identity), known))
        problems = list(problems_of(entry, checkout()))
        yield RunProblems(name, took_s, problems, undecided(entry), checks)
    everywhere = list(unreadable(ALL_PATHS, document([], batch.notes)["notes"]))
    if everywhere:
        yield RunProblems(ALL_PATHS, 0.0, everywhere)


def _limit_check(run: str, limit: Limit, excess: Excess | None, entry: ReportEntry) -> Check:
    name = f"limit {limit.text}"
    if excess:
        known = {STATUS: "The verdict is", EPOCH: "The first epoch took"}
        start = known.get(limit.what, f"{limit.what} took")
        title = f"Over the limit {limit.text}"
        text = f"{start} {excess.measured.replace('_', ' ')}."
        return Check(name, Problem(run, OVER_LIMIT, "error", title, text))
    is_known = entry["verdict"]["status"] != "unknown"
    if limit.what == STATUS:
        return Check(name, skipped="" if is_known else NO_VERDICT)
    if not entry["window"]["duration_ps"]:
        return Check(name, skipped=NOT_MEASURED)
    return Check(name, skipped="" if is_known or limit.what == EPOCH else NOT_DIVIDED)


def _baseline_check(run: str, worse: Changed | None, known: bool) -> Check:
    if worse:
        text = f"{worse.sentence[0].upper()}{worse.sentence[1:]}."
        return Check(BASELINE, Problem(run, WORSE, "error", "Worse than the baseline", text))
    return Check(BASELINE, skipped="" if known else NOT_IN_BASELINE)
