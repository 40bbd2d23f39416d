"""How a job ended and what it warned about, according to its console, if that is this run's.

A console log next to a run may come from another process or an earlier run. Its times show which:
a run's console begins before the run does, and is written for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.console_log import (
    ConsoleLine,
    ConsoleLog,
    ConsoleWarning,
    EndKind,
    JobEnd,
    PrintedProgress,
    PythonError,
    ShuffleFill,
    WarningKind,
)
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.signals.ending.process_end import KILLED, OUT_OF_MEMORY, Ending
from stall_analyzer.signals.ending.python_stacks import stack_of_error

NS = 1_000_000_000
# The last record of an event file and the last words of its process may be this far apart, and so
# may two clocks.
SLACK_NS = 60 * NS
# With TF_CPP_MIN_LOG_LEVEL set, the first line with a time may come at the end of a long epoch.
LONG_NS = 24 * 3600 * NS
# Ends that explain whatever Python printed at the end, according to the scheduler or the kernel.
REASONS: frozenset[EndKind] = frozenset(
    {"time_limit", "preempted", "node_failed", "out_of_memory", "cancelled"}
)

HOW: dict[EndKind, str] = {
    "time_limit": "the scheduler ended the job at its time limit",
    "preempted": "the scheduler took its machine away (preemption)",
    "node_failed": "its machine failed",
    "out_of_memory": "it ran out of memory and was killed",
    "cancelled": "the job was canceled",
    "crashed": "the process crashed",
    "killed": "the process was killed (SIGKILL), as happens when memory runs out",
    "told_to_end": "the process was told to terminate (SIGTERM)",
    "exit_code": "the process failed",
}
BY_HAND = "it was interrupted (KeyboardInterrupt)"

ConsoleEndKind: TypeAlias = EndKind | Literal["error"]


@dataclass(frozen=True)
class ConsoleEnd:
    """How the job ended, according to its console."""

    kind: ConsoleEndKind
    line: ConsoleLine  # the one that says so
    error: str = ""  # "ValueError: no such file"
    place: Frame | None = None  # of the error, in the user's own code
    out_of_memory: bool = False
    progress: PrintedProgress | None = None  # how far it had gotten

    @property
    def bucket(self) -> Bucket:
        return "memory" if self.out_of_memory else "unknown"

    @property
    def words(self) -> str:
        """`ValueError: no such file at train.py:41 (job.err:210)`."""
        if self.kind == "error":
            place = f" at {self.place.place}" if self.place is not None else ""
            what = BY_HAND if self.error == "KeyboardInterrupt" else self.error.rstrip(".")
            return f"{what}{place} ({self.line.place})"
        return f"{HOW[self.kind]} ({self.line.place}: {self.line.text.rstrip('.')})"


@dataclass(frozen=True)
class ConsoleSignals:
    """Everything that a run's consoles say about it."""

    end: ConsoleEnd | None = None
    earlier_error: PythonError | None = None  # the job went on after it
    warnings: Mapping[WarningKind, ConsoleWarning] = field(default_factory=dict)
    fill: ShuffleFill | None = None
    progress: PrintedProgress | None = None


def console_signals(
    timeline: Timeline, capture: Capture | None = None, ending: Ending | None = None
) -> ConsoleSignals:
    """Only from consoles that are known to be this run's. Where a capture says how the process
    ended, or that it is still running, no console knows better."""
    is_known = capture is not None and (ending is None or ending.reason != KILLED)
    logs = [log for log in timeline.consoles if _is_of_run(log, timeline.events)]
    if not logs:
        return ConsoleSignals()
    warnings = {kind: warning for log in logs for kind, warning in log.warnings.items()}
    errors = [log.error for log in logs if log.error is not None]
    end = _end_of(logs, timeline.events) if not is_known else None
    return ConsoleSignals(
        end=end,
        earlier_error=errors[0] if errors and end is None and not is_known else None,
        warnings=warnings,
        fill=next((log.fill for log in logs if log.fill is not None), None),
        progress=next((log.progress for log in logs if log.progress is not None), None),
    )


def _is_of_run(log: ConsoleLog, events: EventLog | None) -> bool:
    """Whether nothing in it or about it says that another process wrote it."""
    if log.is_named:
        return True
    if not (log.is_own or log.trains):
        return False
    if events is None or events.first_wall_ns is None or events.last_wall_ns is None:
        return log.is_own
    is_older = log.written_ns is not None and log.written_ns < events.first_wall_ns - SLACK_NS
    return not is_older and not _begins_after(log, events.last_wall_ns)


def _begins_after(log: ConsoleLog, last_ns: int) -> bool:
    """Whether it begins after the run. Outside the run's folder, it may be a later job's."""
    if log.first_ns is not None:
        return log.first_ns > last_ns + (LONG_NS if log.is_own else SLACK_NS)
    return not log.is_own and log.written_ns is not None and log.written_ns > last_ns + LONG_NS


def _end_of(logs: list[ConsoleLog], events: EventLog | None) -> ConsoleEnd | None:
    """The end in the console that was written last; None if several of them disagree, or if the run
    was still writing after it."""
    newest = max(log.written_ns or 0 for log in logs)
    last = [log for log in logs if (log.written_ns or 0) >= newest - SLACK_NS]
    ends = [_end(log) for log in last if log.trains or _end(log) is not None]
    agree = len({(end.kind, end.error) if end is not None else None for end in ends}) == 1
    is_named = any(log.is_named for log in last)
    if not agree or (_events_go_on(newest, events) and not is_named):
        return None
    return ends[0]


def _events_go_on(written_ns: int, events: EventLog | None) -> bool:
    last_ns = events.last_wall_ns if events is not None else None
    return bool(written_ns and last_ns is not None and last_ns > written_ns + SLACK_NS)


def _end(log: ConsoleLog) -> ConsoleEnd | None:
    error = log.error if log.error is not None and log.error.is_last else None
    if log.end is not None and (error is None or log.end.kind in REASONS):
        return _of_job(log.end, log.progress)
    return _of_error(error, log.progress) if error is not None else None


def _of_job(end: JobEnd, progress: PrintedProgress | None) -> ConsoleEnd:
    return ConsoleEnd(
        end.kind, end.line, out_of_memory=end.kind == "out_of_memory", progress=progress
    )


def _of_error(error: PythonError, progress: PrintedProgress | None) -> ConsoleEnd:
    return ConsoleEnd(
        "error",
        error.line,
        error=error.text,
        place=stack_of_error(error.frames).users,
        out_of_memory=error.kind in OUT_OF_MEMORY,
        progress=progress,
    )
