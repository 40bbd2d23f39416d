"""One run, analysed: its entry of the JSON document, whatever happened.

A run becomes its entry in the process that analysed it, so that only plain data crosses from one
process to another. Whoever needs more of the report than its entry says what, by a function.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from stall_analyzer.files.remote import copies_kept
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Report
from stall_analyzer.model.runs import Run
from stall_analyzer.pipeline import analyze
from stall_analyzer.progress import Progress, ignore_progress
from stall_analyzer.report.document import document

# What else to make of a report, as plain data; a function that a process can be told by name.
ExtraOf: TypeAlias = Callable[[Report], Any]


@dataclass(frozen=True)
class Outcome:
    """One run's entry of the JSON document, and the traceback where our own code failed on it."""

    entry: dict[str, Any]
    traceback: str = ""
    extra: Any = None
    final: bool = True  # reading the same files again would give the same


def analyze_one(
    run: Run, extra_of: ExtraOf | None = None, progress: Progress = ignore_progress
) -> Outcome:
    try:
        with copies_kept():
            report = analyze(run, progress)
            entry = document([report], notes=())["runs"][0]
            final = not any(note.may_pass for note in report.notes)
            extra = extra_of(report) if extra_of else None
            return Outcome(entry, extra=extra, final=final)
    except Exception as error:  # a fault of ours in one run must not hide the others
        return failure(run, f"{type(error).__name__}: {error}", traceback.format_exc())


def failure(run: Run, reason: str, trace: str = "") -> Outcome:
    """An entry that says nothing about the training, and why."""
    text = f"This run could not be analysed: {reason}."
    if trace:
        text += " This is a fault of stall-analyze."
    entry = {
        "run": run.name,
        "attempt": run.attempt,
        "sessions": [session.id for session in run.sessions],
        "hosts": sorted({host.host for session in run.sessions for host in session.hosts}),
        "window": {
            "start_unix_ns": None,
            "duration_ps": 0,
            "epoch": 0,
            "covered_ps": 0,
            "source": "events",
        },
        "verdict": {
            "status": "unknown",
            "primary": "unknown",
            "sentence": "This run could not be analysed.",
            "confidence": 0.0,
        },
        "buckets_ps": dict.fromkeys(BUCKETS, 0),
        "causes_ps": {},
        "one_time_ps": 0,
        "recurring_ps": 0,
        "phases": [],
        "steps": [],
        "host_ledgers": [],
        "traces": [],
        "later_epochs": {"count": 0, "median_ps": None},
        "findings": [],
        "plan": None,
        "evidence": {},
        "notes": [{"level": "error", "text": text, "where": run.path}],
    }
    return Outcome(entry, trace, final=False)
