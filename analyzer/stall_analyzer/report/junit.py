"""Problems as a JUnit report: a suite for each run, a test for each thing that can be wrong.

There is no one schema; this keeps to what Jenkins' and Maven's have in common. A test fails where
a finding is worth acting on, a limit is exceeded, a baseline is missed or a file was not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from stall_analyzer.report.problems import Problem

FAILS = ("error", "warning")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
# In an attribute, a line break would be read as a space.
BREAKS = {"\n": "&#10;", "\t": "&#9;"}


def render(runs: Iterable[tuple[str, float, Sequence[Problem]]]) -> Iterator[str]:
    """`runs`: what each is called, the seconds of its first epoch, and its problems."""
    yield HEAD
    yield '<testsuites name="stall-analyze">\n'
    for run, took_s, problems in runs:
        yield from _suite(run, took_s, problems)
    yield "</testsuites>\n"


def _suite(run: str, took_s: float, problems: Sequence[Problem]) -> Iterator[str]:
    failures = sum(problem.gravity in FAILS for problem in problems)
    counts = f'tests="{max(len(problems), 1)}" failures="{failures}" errors="0" skipped="0"'
    yield f'  <testsuite name={_value(run)} {counts} time="{took_s:.3f}">\n'
    if not problems:
        yield f'    <testcase name="nothing to change" classname={_value(run)} time="0"/>\n'
    for problem in problems:
        yield from _case(problem)
    yield "  </testsuite>\n"


def _case(problem: Problem) -> Iterator[str]:
    name = f"{problem.rule} {problem.title}"
    yield f'    <testcase name={_value(name)} classname={_value(problem.run)} time="0">\n'
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
