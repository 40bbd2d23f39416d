"""Problems as a JUnit report: a suite for each run, a test for each thing that can be wrong.

There is no single schema; this uses only what those of Jenkins and Maven have in common. A test
fails if a finding is worth acting on, a limit is exceeded, a run is worse than the baseline, or a
file was not read. Every run has a test for each limit and for the baseline, so that a server can
follow it from build to build. A run with nothing else to report has one more test, which is skipped
if the verdict leaves open whether there is anything to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from stall_analyzer.report.problems import Check, Problem, RunProblems

FAILS = ("error", "warning")
WELL = "nothing to change"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
# In an attribute, a line break would be read as a space.
BREAKS = {"\n": "&#10;", "\t": "&#9;"}


def render(runs: Iterable[RunProblems]) -> Iterator[str]:
    yield HEAD
    yield '<testsuites name="stall-analyze">\n'
    for run in runs:
        yield from _suite(run)
    yield "</testsuites>\n"


def _suite(run: RunProblems) -> Iterator[str]:
    tests = [*(_outcome(check) for check in run.checks), *map(_problem, run.problems)]
    if not run.problems:
        tests.append(("undecided", _skipped(run.undecided)) if run.undecided else (WELL, ""))
    failures, skipped = (
        sum(inner.startswith(f"<{tag} ") for _, inner in tests) for tag in ("failure", "skipped")
    )
    name = _value(run.run)
    counts = f'tests="{len(tests)}" failures="{failures}" errors="0" skipped="{skipped}"'
    yield f'  <testsuite name={name} {counts} time="{run.took_s:.3f}">\n'
    for test, inner in tests:
        start = f'    <testcase name={_value(test)} classname={name} time="0"'
        yield f"{start}>\n      {inner}\n    </testcase>\n" if inner else f"{start}/>\n"
    yield "  </testsuite>\n"


def _outcome(check: Check) -> tuple[str, str]:
    """A test's name and its content, which is empty if it passes."""
    if check.problem:
        return check.name, _problem(check.problem)[1]
    return check.name, _skipped(check.skipped) if check.skipped else ""


def _problem(problem: Problem) -> tuple[str, str]:
    where = f"{problem.place.path}:{problem.place.line}: " if problem.place else ""
    text = _text(where + problem.text)
    if problem.gravity not in FAILS:
        return problem.test, f"<system-out>{text}</system-out>"
    start = f"failure type={_value(problem.rule)} message={_value(where + problem.title)}"
    return problem.test, f"<{start}>{text}</failure>"


def _skipped(why: str) -> str:
    return f"<skipped message={_value(why)}/>"


def _text(text: str) -> str:
    return escape(_clean(text))


def _value(text: str) -> str:
    return quoteattr(_clean(text), BREAKS)


def _clean(text: str) -> str:
    """XML 1.0 has no way to write most control characters, or half characters."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
