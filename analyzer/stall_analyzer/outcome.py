"""One run, analyzed: its entry in the JSON document, whatever happened.

A run becomes its entry in the process that analyzed it, so that only plain data crosses from one
process to another. Whoever needs more of the report than its entry passes a function that makes it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stall_analyzer.files.remote import copies_kept
from stall_analyzer.model.findings import Report, Verdict
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import Run
from stall_analyzer.model.timeline import Timeline, Window
from stall_analyzer.pipeline import analyze
from stall_analyzer.progress import Progress, ignore_progress
from stall_analyzer.report.document import run_document
from stall_analyzer.signals.ending.still_running import is_timeless

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ReportEntry

# What else to make from a report, as plain data; a function that can be sent to a process by name.
ExtraOf: TypeAlias = Callable[[Report], Any]


@dataclass(frozen=True)
class Outcome:
    """One run's entry in the JSON document, and the traceback if our own code failed on it."""

    entry: ReportEntry
    traceback: str = ""
    extra: Any = None
    final: bool = True  # reading the same files again would give the same result
    timeless: bool = False  # and would at any time, even while the run continues


def analyze_one(
    run: Run,
    extra_of: ExtraOf | None = None,
    progress: Progress = ignore_progress,
    kept_in: Path | None = None,
) -> Outcome:
    try:
        with copies_kept():
            report = analyze(run, progress, kept_in)
            return outcome_of(report, extra_of(report) if extra_of else None)
    except MemoryError:
        return failure(run, "it needs more memory than one run may use (STALL_MEMORY_LIMIT)")
    except Exception as error:  # a bug of ours in one run must not hide the others
        return failure(run, f"{type(error).__name__}: {error}", traceback.format_exc())


def outcome_of(report: Report, extra: Any = None) -> Outcome:
    goes_on = report.verdict.status == "running"  # which does not last, whatever is written
    final = not goes_on and not any(note.may_pass for note in report.notes)
    timeless = final and is_timeless(report.timeline.events)
    return Outcome(run_document(report), extra=extra, final=final, timeless=timeless)


def failure(run: Run, reason: str, trace: str = "") -> Outcome:
    """An entry that says nothing about the training, and why."""
    text = f"This run could not be analyzed: {reason}."
    if trace:
        text += " This is a bug in stall-analyze."
    nothing = Ledger(np.zeros(1, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.bool_))
    report = Report(
        run,
        Timeline(Window(0, 0, "", ""), (), (), (), (), None),
        (HostLedger("", nothing, 0, None, {}),),
        nothing,
        findings=(),
        plan=None,
        verdict=Verdict("unknown", "unknown", "This run could not be analyzed.", 0.0),
        notes=(Note("error", text, run.path),),
    )
    entry = run_document(report)
    entry["hosts"] = sorted({host.host for session in run.sessions for host in session.hosts})
    return Outcome(entry, trace, final=False)
