"""No epoch was ever finished in the event files: the run is slow, stuck or dead.

What it finds
Event files that speak of training and hold no end of an epoch.

Why it stalls
Three things look alike from outside: a long first epoch that still goes on, a job that hangs, and a
job that was killed.

How it is measured
The last batch that was logged, the usual time between two of them, and how long after the last
batch anything else was still written.

Example
41 batches were logged, one every 4 ms; the last record is of the same moment.

What to do
Look whether the process lives. If it does and the file no longer grows, ask it where it is
(py-spy dump). If the file grows, wait, or profile the batches that come.

Blind spots
Records are written every two minutes or so; without update_freq="batch" a healthy first epoch shows
nothing until its end. A log directory cannot say whether its process still runs.
"""

from __future__ import annotations

from stall_analyzer.answers import Change, Finding
from stall_analyzer.format import seconds
from stall_analyzer.signals import Signals
from stall_analyzer.signals.progress import Progress

ID = "ST510"
NAME = "stuck_or_dead"
BUCKET = "unknown"

# A batch that takes this many times the usual one is no longer merely slow.
SILENT_FACTOR = 20


def check(signals: Signals) -> Finding | None:
    progress = signals.progress
    if progress is None or progress.finished:
        return None
    silent = _went_silent(progress)
    return Finding(
        id=ID,
        name=NAME,
        bucket=BUCKET,
        severity="consider" if silent else "note",
        title="No epoch was finished when this log ends: the run is slow, stuck or dead",
        explanation=_explanation(progress, silent),
        change=Change(
            "Look whether the process still runs and the event file still grows. If it runs and "
            "the file does not grow, ask the process where it is.",
            "",
            "py-spy dump --pid PID    # what each thread is doing",
        ),
        confidence=0.6,
    )


def _went_silent(progress: Progress) -> bool:
    usual, silence = progress.usual_batch_ps, progress.silence_ps
    return usual is not None and silence is not None and silence > SILENT_FACTOR * max(usual, 1)


def _explanation(progress: Progress, silent: bool) -> str:
    if progress.batches == 0:
        return (
            f"The event files begin training and end {seconds(progress.lasted_ps)} later without a "
            f'batch or an epoch. Without update_freq="batch" a healthy first epoch looks the same.'
        )
    usual = progress.usual_batch_ps
    pace = f", one every {seconds(usual)}" if usual else ""
    text = f"{progress.batches} batches were logged in {seconds(progress.lasted_ps)}{pace}."
    if silent:
        return (
            f"{text} After the last of them {seconds(progress.silence_ps or 0)} went by until the "
            f"last record: it stood still or did something other than training."
        )
    return f"{text} Up to its last record it made progress; what came then is not in the files."
