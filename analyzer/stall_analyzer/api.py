"""The analysis as Python objects, for scripts and notebooks: `stall_analyzer.analyze("logs/")`.

Times are seconds here, because people read them; `document` has the exact picoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from stall_analyzer.discover.console_files import with_named_console
from stall_analyzer.discover.discover import discover
from stall_analyzer.errors import UsageError
from stall_analyzer.files.output import check_file, write_file
from stall_analyzer.model.findings import Change, Verdict
from stall_analyzer.model.format import listed
from stall_analyzer.model.kinds import Bucket, Severity, StepPhase
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.outcome import analyze_one
from stall_analyzer.progress import Progress, ignore_progress
from stall_analyzer.report import html, markdown, notebook
from stall_analyzer.report.document import document
from stall_analyzer.report.facts import Name, figures
from stall_analyzer.report.valid_text import valid_text

if TYPE_CHECKING:
    import pandas

    from stall_analyzer.report.document_types import (
        Document,
        FindingEntry,
        RangeEntry,
        ReportEntry,
        StepEntry,
    )

LogPath: TypeAlias = "str | PathLike[str]"


@dataclass(frozen=True)
class Finding:
    """One thing that costs time or learning, and the change to make. Ranges are (low, high)."""

    id: str
    name: str
    bucket: Bucket
    severity: Severity
    title: str
    explanation: str
    change: Change
    lost_s: float
    gain_s: tuple[float, float]  # saved in the first epoch
    later_gain_s: tuple[float, float]  # saved in each later epoch
    confidence: float
    stack: tuple[str, ...]  # the thread that proves it, innermost frame first


@dataclass(frozen=True)
class Step:
    """A step of the first epoch."""

    index: int
    phase: StepPhase
    start_s: float  # from the beginning of the first epoch
    end_s: float
    buckets_s: Mapping[Bucket, float]  # where its time went

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


class Analysis(Sequence["Analysis"]):
    """One run or many. The properties of a run need an analysis of one run: choose it by number or
    name, or loop over them; each item is an analysis, too."""

    def __init__(
        self,
        runs: Sequence[ReportEntry],
        timelines: Sequence[Sequence[Any] | None],
        notes: Sequence[Note],
        paths: Sequence[str] = (),
    ) -> None:
        self._runs = tuple(runs)
        self._timelines = tuple(timelines)  # for the page, as plain data
        self._notes = tuple(notes)
        self.paths = tuple(paths)  # the paths that were read: nothing may be written there

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, which: int | str | slice) -> Analysis:
        """By number or slice, or all attempts of the run with that name."""
        if isinstance(which, str):
            chosen = [i for i, run in enumerate(self._runs) if run["run"] == which]
            if not chosen:
                raise KeyError(f"no run is named {which}; the runs are: {self._names}")
        else:
            numbers = range(len(self))[which]
            chosen = [numbers] if isinstance(numbers, int) else list(numbers)
        return Analysis(
            [self._runs[i] for i in chosen],
            [self._timelines[i] for i in chosen],
            self._notes,
            self.paths,
        )

    @property
    def name(self) -> str:
        """As TensorBoard names the run."""
        return self._run["run"]

    @property
    def attempt(self) -> int:
        """Counts restarts that wrote into the same directory, from 1."""
        return self._run["attempt"]

    @property
    def verdict(self) -> Verdict:
        said = self._run["verdict"]
        return Verdict(
            said["status"],
            said["primary"],
            said["sentence"],
            said["confidence"],
            said["host"] or "",
            tuple(said["candidates"]),
        )

    @property
    def duration_s(self) -> float:
        """How long the first epoch took."""
        return _seconds(self._run["window"]["duration_ps"])

    @property
    def buckets_s(self) -> dict[Bucket, float]:
        """Where the time of the first epoch went: all buckets, adding up to its duration. Estimated
        if not all of it was traced (`estimated`)."""
        return _all_seconds(figures(self._run)["buckets_ps"])

    @property
    def causes_s(self) -> dict[str, float]:
        """The same in more detail, such as `input.shuffle_fill`; only causes that occur."""
        return _all_seconds(figures(self._run)["causes_ps"])

    @property
    def estimated(self) -> bool:
        """Whether not all of the epoch was traced, so that buckets and causes are estimated."""
        return self._run["estimate"] is not None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings, most worth acting on first."""
        return tuple(_finding(found) for found in self._run["findings"])

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(map(_step, self._run["steps"]))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was missing, cut off or assumed."""
        return tuple(note["text"] for note in self._run["notes"])

    @property
    def document(self) -> Document:
        """The JSON document, as `stall-analyze --json` writes it."""
        return document(list(self._runs), self._notes)

    def to_dataframe(self) -> pandas.DataFrame:
        """A DataFrame with a row for each step and a column for each bucket. Needs pandas."""
        try:
            import pandas  # noqa: PLC0415  optional, and slow to import
        except ImportError as error:
            raise UsageError("to_dataframe() needs pandas: pip install pandas") from error
        return pandas.DataFrame([_row(run, step) for run in self for step in run.steps])

    def save(self, path: LogPath) -> None:
        """A report for people (.html, .md) or for programs (.json)."""
        target = Path(path)
        check_file(target)
        write_file(target, [self._as(target.suffix)])

    def _as(self, suffix: str) -> str:
        if suffix == ".html":
            return html.render(self.document, self._timelines)
        if suffix == ".md":
            return markdown.render(self.document)
        if suffix == ".json":
            return json.dumps(valid_text(self.document), allow_nan=False, indent=2)
        unknown = suffix or "a file without a suffix"
        raise UsageError(f"cannot save a report as {unknown}: use .html, .md or .json")

    @property
    def _run(self) -> ReportEntry:
        if len(self) == 1:
            return self._runs[0]
        raise UsageError(f"there are {len(self)} runs; choose one by name: {self._names}")

    @property
    def _names(self) -> str:
        return listed(list(dict.fromkeys(run["run"] for run in self._runs)))

    def __repr__(self) -> str:
        if len(self) == 1:
            return f"<Analysis of {self.name}: {self.verdict.sentence}>"
        return f"<Analysis of {len(self)} runs: {self._names}>"

    def _repr_html_(self) -> str:
        return notebook.render(self._runs)


def analyze(
    paths: LogPath | Iterable[LogPath],
    *,
    console: LogPath = "",
    progress: Progress = ignore_progress,
) -> Analysis:
    """Every run under a log directory, run folder or file, or under several of them.

    `console` is what the run wrote to its terminal, if that is not next to its logs.

    Raises NothingFound if there is no run. Bad files become notes, never exceptions.
    """
    several = [paths] if isinstance(paths, (str, PathLike)) else paths
    read = [fspath(path) for path in several]
    found = discover(read)
    if fspath(console):
        found = replace(found, runs=tuple(with_named_console(found.runs, fspath(console))))
    # The timelines of thousands of runs would fit neither in memory nor in one page.
    extra = html.timelines_of if len(found.runs) <= html.MOST_RUNS else None
    outcomes = [analyze_one(run, extra, progress) for run in found.runs]
    return Analysis(
        [outcome.entry for outcome in outcomes],
        [outcome.extra for outcome in outcomes],
        found.notes,
        read,
    )


def _finding(found: FindingEntry) -> Finding:
    change = found["change"]
    return Finding(
        id=found["id"],
        name=found["name"],
        bucket=found["bucket"],
        severity=found["severity"],
        title=found["title"],
        explanation=found["explanation"],
        confidence=found["confidence"],
        lost_s=_seconds(found["lost_ps"]),
        gain_s=_range(found["gain_ps"]),
        later_gain_s=_range(found["later_gain_ps"]),
        change=Change(change["text"], change["before"], change["after"]),
        stack=tuple(found["stack"]),
    )


def _step(step: StepEntry) -> Step:
    return Step(
        index=step["index"],
        phase=step["phase"],
        start_s=_seconds(step["start_ps"]),
        end_s=_seconds(step["end_ps"]),
        buckets_s=_all_seconds(step["buckets_ps"]),
    )


def _row(run: Analysis, step: Step) -> dict[str, object]:
    buckets = {f"{bucket}_s": step.buckets_s.get(bucket, 0.0) for bucket in run.buckets_s}
    return {
        "run": run.name,
        "attempt": run.attempt,
        "step": step.index,
        "phase": step.phase,
        "start_s": step.start_s,
        "duration_s": step.duration_s,
        **buckets,
    }


def _range(ps: RangeEntry) -> tuple[float, float]:
    return _seconds(ps["low"]), _seconds(ps["high"])


def _all_seconds(ps: Mapping[Name, int]) -> dict[Name, float]:
    return {name: _seconds(value) for name, value in ps.items()}


def _seconds(ps: int) -> float:
    return ps / PS_PER_S
