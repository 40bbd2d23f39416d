"""What the consoles of a run say about its job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from stall_analyzer.consoles.console_text import UNIX_TIME, ConsoleText, read_text
from stall_analyzer.consoles.console_warnings import console_warnings, shuffle_fill
from stall_analyzer.consoles.job_ends import job_end
from stall_analyzer.consoles.printed_progress import printed_progress
from stall_analyzer.consoles.tracebacks import last_traceback
from stall_analyzer.errors import Unreachable, UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.model.console_log import ConsoleLog, ConsoleWarning, PythonError, WarningKind
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import ConsoleFile, Run

NS = 1_000_000_000
# What only a program with TensorFlow or Keras writes.
OF_TENSORFLOW = (
    "tensorflow/", "tensorflow.python", "/keras/", "oneDNN custom operations", "WARNING:tensorflow",
    "cpu_feature_guard", "absl::InitializeLog", "gpu_device.cc",
)  # fmt: skip
TOGETHER_NS = 60 * NS  # the files of one job are last written at about the same time


def read_consoles(run: Run, notes: list[Note]) -> tuple[ConsoleLog, ...]:
    """One for each job: job.out and job.err belong together."""
    in_order = sorted(run.consoles, key=_job_of)
    groups = (list(group) for _, group in groupby(in_order, key=_job_of))
    found = (_merged([log for file in group if (log := _read(file, notes))]) for group in groups)
    return tuple(log for log in found if log is not None)


def _job_of(console: ConsoleFile) -> tuple[str, str]:
    folder, name = files.split(console.path)
    return folder, name.rpartition(".")[0]


def _read(console: ConsoleFile, notes: list[Note]) -> ConsoleLog | None:
    try:
        text = read_text(console)
    except UnreadableFile as error:
        said = f"A file that looks like the job's console output could not be read: {error}."
        notes.append(Note("info", said, console.path, isinstance(error, Unreachable)))
        return None
    return _log(console, text) if text is not None else None


def _log(console: ConsoleFile, text: ConsoleText) -> ConsoleLog:
    progress, at = printed_progress(text)
    first = UNIX_TIME.search(text.text)
    written_s = console.written_unix_s
    return ConsoleLog(
        files=(text.file,),
        trains=progress is not None or any(words in text.text for words in OF_TENSORFLOW),
        is_own=console.is_own,
        is_named=console.is_named,
        error=last_traceback(text, at),
        end=job_end(text, at),
        warnings=console_warnings(text),
        fill=shuffle_fill(text),
        progress=progress,
        first_ns=int(float(first[1]) * NS) if first else None,
        written_ns=None if written_s is None else int(written_s * NS),
    )


def _merged(logs: Sequence[ConsoleLog]) -> ConsoleLog | None:
    if len(logs) <= 1:
        return logs[0] if logs else None
    written = [log.written_ns for log in logs if log.written_ns is not None]
    newest = max(written, default=None)
    errors = [_unless_it_went_on(log, newest) for log in logs]
    return ConsoleLog(
        files=tuple(name for log in logs for name in log.files),
        trains=any(log.trains for log in logs),
        is_own=any(log.is_own for log in logs),
        is_named=any(log.is_named for log in logs),
        error=next((error for error in errors if error is not None), None),
        end=next((log.end for log in logs if log.end is not None), None),
        warnings=_all_warnings(logs),
        fill=next((log.fill for log in logs if log.fill is not None), None),
        progress=next((log.progress for log in logs if log.progress is not None), None),
        first_ns=min((log.first_ns for log in logs if log.first_ns is not None), default=None),
        written_ns=newest,
    )


def _unless_it_went_on(log: ConsoleLog, newest_ns: int | None) -> PythonError | None:
    """An error after which the job's other file was still written to did not end the job."""
    if log.error is None or log.written_ns is None or newest_ns is None:
        return log.error
    went_on = newest_ns - log.written_ns > TOGETHER_NS
    return replace(log.error, is_last=log.error.is_last and not went_on)


def _all_warnings(logs: Sequence[ConsoleLog]) -> dict[WarningKind, ConsoleWarning]:
    found: dict[WarningKind, ConsoleWarning] = {}
    for log in logs:
        for kind, warning in log.warnings.items():
            first = found.get(kind, replace(warning, count=0))
            found[kind] = replace(first, count=first.count + warning.count)
    return found
