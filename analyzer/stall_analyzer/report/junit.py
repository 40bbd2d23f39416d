"""Problems as a JUnit report: a suite for each run, a test for each thing that can be wrong.

There is no one schema; this keeps to what Jenkins' and Maven's have in common. A test fails where
a finding is worth acting on, a limit is exceeded, a baseline is missed or a file was not read. A
run whose verdict leaves open whether there is anything to change has one test, which is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from stall_analyzer.report.problems import Problem, RunProblems

FAILS = ("error", "warning")
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
    failures = sum(problem.gravity in FAILS for problem in run.problems)
    skipped = int(not run.problems and bool(run.undecided))
    tests, name = max(len(run.problems), 1), _value(run.run)
    counts = f'tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"'
    yield f'  <testsuite name={name} {counts} time="{run.took_s:.3f}">\n'
    if skipped:
        yield f'    <testcase name="undecided" classname={name} time="0">\n'
        yield f"      <skipped message={_value(run.undecided)}/>\n    </testcase>\n"
    elif not run.problems:
        yield f'    <testcase name="nothing to change" classname={name} time="0"/>\n'
    for problem in run.problems:
        yield from _case(problem)
    yield "  </testsuite>\n"


def _case(problem: Problem) -> Iterator[str]:
    name, run = _value(problem.test), _value(problem.run)
    yield f'    <testcase name={name} classname={run} time="0">\n'
    where = f"{problem.place.path}:{problem.place.line}: " if problem.place else ""
    if problem.gravity in FAILS:
        start = f"failure type={_value(problem.rule)} message={_value(where + problem.title)}"
        yield f"      <{start}>{_text(where + problem.text)}</failure>\n"
    else:
        yield f"      <system-out>{_text(where + problem.text)}</system-out>\n"
    yield "    </testcase>\n"


def _text(text: str) -> str:
    return escape(_clean(text))


def _value(text: str) -> str:
    return quoteattr(_clean(text), BREAKS)


def _clean(text: str) -> str:
    """XML 1.0 has no way to write most control characters, nor halves of characters."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
