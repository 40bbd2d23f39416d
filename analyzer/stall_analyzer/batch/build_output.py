"""A batch as builds and reviews read it: GitHub's annotations, SARIF, JUnit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.judge import Judge
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.report import github, junit, sarif
from stall_analyzer.report.document import document
from stall_analyzer.report.facts import shown_name
from stall_analyzer.report.problems import (
    OVER_LIMIT,
    WORSE,
    Problem,
    RunProblems,
    checkout,
    problems_of,
    undecided,
    unreadable,
)

ALL_PATHS = "all paths"


def as_github(batch: Batch, judge: Judge) -> Iterator[str]:
    return github.render(_problems(batch, judge))


def as_sarif(batch: Batch, judge: Judge) -> Iterator[str]:
    yield sarif.render(_problems(batch, judge))


def as_junit(batch: Batch, judge: Judge) -> Iterator[str]:
    return junit.render(_runs(batch, judge))


def _problems(batch: Batch, judge: Judge) -> Iterator[Problem]:
    for run in _runs(batch, judge):
        yield from run.problems


def _runs(batch: Batch, judge: Judge) -> Iterator[RunProblems]:
    judged = _judged(judge, batch.root)
    for entry in batch.entries():
        name = shown_name(entry["run"], entry["attempt"], entry["folder"])
        took_s = entry["window"]["duration_ps"] / PS_PER_S
        problems = [*judged.pop(name, []), *problems_of(entry, checkout())]
        yield RunProblems(name, took_s, problems, undecided(entry))
    everywhere = list(unreadable(ALL_PATHS, document([], batch.notes)["notes"]))
    if everywhere:
        yield RunProblems(ALL_PATHS, 0.0, everywhere)


def _judged(judge: Judge, root: str) -> dict[str, list[Problem]]:
    """What is over a limit or worse than before, by run."""
    found: defaultdict[str, list[Problem]] = defaultdict(list)
    for excess in judge.limits.in_order():
        run = shown_name(excess.run, excess.attempt, root)
        title = f"Over the limit {excess.limit}"
        found[run].append(Problem(run, OVER_LIMIT, "error", title, f"It is {excess.measured}."))
    for one in judge.comparison.in_order() if judge.comparison else ():
        run = shown_name(one.run, one.attempt, root)
        text = f"{one.sentence[0].upper()}{one.sentence[1:]}."
        found[run].append(Problem(run, WORSE, "error", "Worse than the baseline", text))
    return found
