"""What builds and reviews are told about runs: one problem at a time, with the user's file and
line. A view of the document for GitHub annotations, SARIF and JUnit. Notes are not problems.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from stall_analyzer.model.records import dataclass
from stall_analyzer.report.facts import shown_name
from stall_analyzer.report.words import worth

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import FindingEntry, NoteEntry, ReportEntry

Gravity = Literal["error", "warning", "note"]

# Besides the findings: what a build fails on, and what could not be read.
OVER_LIMIT, WORSE, VERDICT, UNREADABLE = "over-limit", "worse", "verdict", "unreadable"
OTHER_RULES = {
    OVER_LIMIT: "A run exceeds a limit that was set for it.",
    WORSE: "A run is worse than in the baseline.",
    VERDICT: "The run is wasted: it is dead, stuck, or learning nothing.",
    UNREADABLE: "A file or a run could not be read.",
}
TITLES = {
    "dead": "The run is dead",
    "stuck": "The run is stuck",
    "learning_nothing": "The run learns nothing",
}
UNDECIDED = ("running", "unknown")  # verdicts that speak neither for nor against a run
# A build fails on what it was told to fail on; findings are only advice.
GRAVITIES: dict[str, Gravity] = {"act": "warning", "consider": "note"}


@dataclass(frozen=True)
class Place:
    """A line of the user's code; relative to the checkout if the file is in it."""

    path: str
    line: int


@dataclass(frozen=True)
class Problem:
    run: str  # as views call it
    rule: str  # for a finding, its id
    gravity: Gravity
    title: str
    text: str
    place: Place | None = None
    name: str = ""  # for a finding; unlike the title, the same in each build

    @property
    def test(self) -> str:
        return f"{self.rule} {self.name}" if self.name else self.heading

    @property
    def heading(self) -> str:
        """A finding is known by its id; the other rules' names would only repeat the title."""
        return self.title if self.rule in OTHER_RULES else f"{self.rule} {self.title}"


@dataclass(frozen=True)
class Check:
    """A limit or the baseline, applied to one run."""

    name: str  # the same in each build, whatever the outcome
    problem: Problem | None = None  # if the run fails the check
    skipped: str = ""  # why it says nothing about the run


@dataclass(frozen=True)
class RunProblems:
    """What is wrong with one run, and what the build wanted to know about it."""

    run: str  # as views call it
    took_s: float  # the first epoch
    problems: Sequence[Problem]
    undecided: str = ""  # the verdict, if it leaves open whether there is anything to change
    checks: Sequence[Check] = ()

    @property
    def all_problems(self) -> list[Problem]:
        """All problems, with those that fail the build first."""
        return [*(check.problem for check in self.checks if check.problem), *self.problems]


def problems_of(entry: ReportEntry, checkout: Path) -> Iterator[Problem]:
    """The problems of one run, in the order of its findings."""
    run = shown_name(entry["run"], entry["attempt"], entry["folder"])
    told = [found for found in entry["findings"] if found["severity"] in GRAVITIES]
    verdict = entry["verdict"]
    if verdict["status"] in TITLES and not any(found["severity"] == "act" for found in told):
        yield Problem(run, VERDICT, "warning", TITLES[verdict["status"]], verdict["sentence"])
    for found in told:
        text = " ".join(filter(None, (_sentence(worth(found)), found["change"]["text"])))
        gravity = GRAVITIES[found["severity"]]
        place = _place(found, checkout)
        yield Problem(run, found["id"], gravity, found["title"], text, place, found["name"])
    yield from unreadable(run, entry["notes"])


def undecided(entry: ReportEntry) -> str:
    verdict = entry["verdict"]
    is_open = verdict["candidates"] or verdict["status"] in UNDECIDED
    return verdict["sentence"] if is_open else ""


def unreadable(run: str, notes: Sequence[NoteEntry]) -> Iterator[Problem]:
    for note in notes:
        if note["level"] == "error":
            text = f"{note['text']} ({note['where']})" if note["where"] else note["text"]
            yield Problem(run, UNREADABLE, "error", "Could not be fully read", text)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""


def _place(found: FindingEntry, checkout: Path) -> Place | None:
    """The costliest line; for a hang, the innermost one that is in the checkout."""
    for line in found["lines"]:
        return Place(in_checkout(line["path"], checkout) or line["path"], line["line"])
    for frame in found["stack"]:
        path, _, line_and_function = frame.rpartition(":")
        number = line_and_function.partition(" ")[0]
        known = in_checkout(path, checkout)
        if known and number.isdecimal():
            return Place(known, int(number))
    return None


def in_checkout(path: str, checkout: Path) -> str:
    """A path from the machine that trained, relative to the checkout; empty if it is not in it.
    `/home/me/project/src/train.py` is `src/train.py` where that is a file."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    for start in range(len(parts)):
        tail = PurePosixPath(*parts[start:])
        if tail.is_absolute() or ".." in tail.parts:
            continue
        if (checkout / tail).is_file():
            return str(tail)
    return ""


def checkout() -> Path:
    """Where the sources being built are: the job's folder, or the current one."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
