"""What the page asks for, as plain data: the tab gets it over HTTP, the one-file report contains
it.

tb_stall_plugin/http_api.md describes every field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from stall_analyzer import __version__
from stall_analyzer.captures.how_to_capture import HOW_TO_CAPTURE
from stall_analyzer.detectors import manual
from stall_analyzer.report.facts import Facts
from stall_analyzer.report.fleet import Fleet
from stall_analyzer.report.verdict_change import VerdictChange

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import FleetEntry, NoteEntry, ReportEntry, TraceEntry

# How far along a run is, and its facts; each may be null.
RunSummary: TypeAlias = dict[str, object]
Progress: TypeAlias = Mapping[str, object]

# Nobody has asked for the run, it waits its turn, it is being read, or it has a result or none.
UNREAD, WAITING, RUNNING, READY, FAILED = "unread", "waiting", "running", "ready", "failed"
# What the list of runs shows from a report (report/facts.py); null until there is one.
KNOWN = tuple(name for name in Facts.__annotations__ if name != "run")


class RunsAnswer(TypedDict):
    runs: list[RunSummary]
    fleet: FleetEntry
    problems: list[NoteEntry]
    profile_plugin: bool
    logdir: str
    capture: str
    version: str


class ReportAnswer(TypedDict):
    state: str
    version: str
    progress: Progress | None
    changes: Sequence[VerdictChange]
    traces: list[TraceEntry]
    report: ReportEntry


class Section(TypedDict):
    heading: str
    text: str


class ManualAnswer(TypedDict):
    id: str
    name: str
    title: str
    bucket: str
    sections: list[Section]


def run_ids(names: Iterable[tuple[str, int]]) -> list[str]:
    """A unique name for each run, given its name and attempt."""
    ids: dict[str, None] = {}
    for name, attempt in names:
        # A folder's name may not be valid text, and a browser could not send it back.
        text = name.encode("utf-8", "backslashreplace").decode()
        unique = text if attempt == 1 else f"{text} (attempt {attempt})"
        while unique in ids:  # a folder may already have that name
            unique += " (another)"
        ids[unique] = None
    return list(ids)


def runs_answer(
    runs: Sequence[RunSummary], problems: Sequence[NoteEntry], logdir: str, profile_plugin: bool
) -> RunsAnswer:
    return {
        "runs": list(runs),
        "fleet": _sums([run for run in runs if run["state"] == READY]),
        "problems": list(problems),
        "profile_plugin": profile_plugin,
        "logdir": logdir,
        "capture": HOW_TO_CAPTURE,
        "version": __version__,
    }


def _sums(ready: Sequence[RunSummary]) -> FleetEntry:
    """Sums over the runs with a result. Runs have their names from the list."""
    fleet = Fleet()
    for run in ready:
        fleet.add(cast(Facts, run))
    return fleet.summary()


def report_answer(
    entry: ReportEntry,
    version: str,
    progress: Progress | None = None,
    changes: Sequence[VerdictChange] = (),
) -> ReportAnswer:
    return {
        "state": READY,
        "version": version,
        "progress": progress,
        "changes": changes,
        "traces": entry["traces"],
        "report": entry,
    }


def run_summary(
    run: str,
    state: str,
    known: Facts | None = None,
    progress: Progress | None = None,
    error: str | None = None,
    *,
    live: Mapping[str, object] | None = None,
    changes: Sequence[VerdictChange] = (),
) -> RunSummary:
    """One line of the list of runs; `known` is what `facts_of` returns once there is a report.
    `run` is its name in the list, which tells attempts apart."""
    facts: Mapping[str, object] = known or dict.fromkeys(KNOWN)
    far = {"run": run, "state": state, "progress": progress, "error": error}
    return {**facts, **far, "live": live, "changes": changes}


def manual_answer(page: manual.Page) -> ManualAnswer:
    return {
        "id": page.id,
        "name": page.name,
        "title": page.summary,
        "bucket": page.bucket,
        "sections": [{"heading": heading, "text": text} for heading, text in page.sections],
    }
