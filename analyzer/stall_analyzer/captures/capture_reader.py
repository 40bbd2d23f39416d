"""From the JSON texts of a capture's event files to its records.

A capture is cut off wherever its process was killed, and another version may have written it. What
is not understood becomes a note; everything else is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import TypeVar

import numpy as np

from stall_analyzer.captures.books_reader import read_books
from stall_analyzer.captures.capture_format import FORMAT, WindowEvent
from stall_analyzer.captures.capture_records import (
    TRAINING_TASKS,
    BooksRecord,
    CaptureRecord,
    EndRecord,
    Environment,
    MarkRecord,
    ModelRecord,
    NoteRecord,
    PreflightRecord,
    StacksRecord,
    WeightsRecord,
    WindowRecord,
)
from stall_analyzer.captures.failed_wait import with_failed_waits
from stall_analyzer.captures.look_records import DumpRecord, Look, WorkRecord
from stall_analyzer.captures.record_json import read_record
from stall_analyzer.captures.stacks_reader import read_stacks
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass

R = TypeVar("R", bound=CaptureRecord)


@dataclass
class CaptureFile:
    """What one event file contains of a capture."""

    path: str
    texts: list[str] = field(default_factory=list)
    series: Mapping[str, Series] = field(default_factory=dict)  # by tag, without "stall/"


def read_captures(files: Iterable[CaptureFile], notes: list[Note]) -> tuple[Capture, ...]:
    """One capture per process; the one that leads its cluster first."""
    parts = sorted((_Part(file, notes) for file in files), key=lambda part: part.process)
    groups = groupby(parts, key=lambda part: part.process)
    found = [_capture([*members], notes) for _, members in groups]
    captures = those_that_count([_with_task_of_its_own(capture, found) for capture in found])
    for capture in captures:
        where = capture.trace_name
        notes += (Note(note.level, note.text, where) for note in capture.notes)
        failed = [window for window in capture.windows if window.what == WindowEvent.FAILED]
        reasons = (window.why or "the reason is not known" for window in failed)
        notes += (Note("warning", f"A profile could not be taken: {r}.", where) for r in reasons)
    return captures


def _with_task_of_its_own(capture: Capture, found: Sequence[Capture]) -> Capture:
    """A script may start the other workers itself, and set its own TF_CONFIG only after that: then
    its task is the one that none of the others has."""
    mine = capture.environment
    started = [
        other.environment
        for other in found
        if mine.task is None
        and (other.environment.host, other.environment.parent) == (mine.host, mine.pid)
    ]
    left = {task for each in started for task in each.training_tasks}
    left -= {other.environment.task for other in found}
    if len(left) != 1:
        return capture
    (task,) = left
    cluster = next(each.cluster for each in started if task in each.training_tasks)
    return replace(capture, environment=replace(mine, task=task, cluster=cluster))


def those_that_count(found: Sequence[Capture]) -> tuple[Capture, ...]:
    """All captures but those of processes that only help. The one that leads its cluster comes
    first."""
    processes = {(c.environment.host, c.environment.pid) for c in found}
    counting = (capture for capture in found if not _only_helps(capture, processes))
    return tuple(sorted(counting, key=_leaders_first))


def _only_helps(capture: Capture, processes: set[tuple[str, int | None]]) -> bool:
    """A process that another one started, and in which nothing ever trained."""
    environment = capture.environment
    if capture.trains or environment.task is not None or environment.parent is None:
        return False
    return (environment.host, environment.parent) in processes


def _leaders_first(capture: Capture) -> tuple[bool, int, int, int]:
    task = capture.environment.task
    if task is None:
        return not capture.trains, len(TRAINING_TASKS), 0, capture.first_ns
    kinds = [*TRAINING_TASKS, task.type]
    return not capture.trains, kinds.index(task.type), task.index, capture.first_ns


class _Part:
    """A file with its records. A process may write several, one after the other."""

    def __init__(self, file: CaptureFile, notes: list[Note]) -> None:
        self.series = file.series
        read = [read_record(text) for text in file.texts]
        self.records = [record for record in read if record is not None]
        unreadable = len(read) - len(self.records)
        if unreadable:
            text = (
                "Some records of the capture could not be understood and were skipped: "
                f"{unreadable}."
            )
            notes.append(Note("warning", text, file.path))
        self.process = file.path, 0  # nothing says whose it is
        for start in _of(Environment, self.records):
            self.process = start.host, start.pid or 0
            if start.format != FORMAT:
                text = (
                    "Another version of this tool recorded the capture, so its records may mean "
                    "something else."
                )
                notes.append(Note("warning", text, file.path))


def _of(kind: type[R], records: Iterable[CaptureRecord]) -> list[R]:
    return [record for record in records if isinstance(record, kind) and record.kind == kind.kind]


def _capture(parts: Sequence[_Part], notes: list[Note]) -> Capture:
    series = _joined([part.series for part in parts])
    capture, bad_rows = capture_of([r for part in parts for r in part.records], series)
    if bad_rows:
        text = f"Rows of the capture's books that do not add up were left out: {bad_rows}."
        notes.append(Note("warning", text, parts[0].process[0]))
    return capture


def capture_of(
    unsorted: Iterable[CaptureRecord], series: Mapping[str, Series]
) -> tuple[Capture, int]:
    """The capture of one process, and how many rows of its books were left out because they do not
    add up."""
    records = sorted(unsorted, key=lambda record: record.ns)
    books, bad_rows = read_books(_of(BooksRecord, records))
    dumps = tuple(_of(DumpRecord, records))
    walls = [int(at) for s in series.values() if len(s) for at in s.wall_ns[[0, -1]]]
    times = [*walls, *(record.ns for record in records)]
    capture = Capture(
        environment=next(reversed(_of(Environment, records)), Environment()),
        models=tuple(_of(ModelRecord, records)),
        weights=tuple(_of(WeightsRecord, records)),
        marks=tuple(_of(MarkRecord, records)),
        windows=tuple(_of(WindowRecord, records)),
        beats=tuple(_of(Look, records)),
        dumps=dumps,
        works=tuple(_of(WorkRecord, records)),
        notes=tuple(note for note in _of(NoteRecord, records) if note.text),
        preflights=tuple(_of(PreflightRecord, records)),
        end=next(reversed(_of(EndRecord, records)), None),
        first_ns=min(times, default=0),
        last_ns=max(times, default=0),
        series=series,
        books=with_failed_waits(books, dumps) if books is not None else None,
        stacks=read_stacks(_of(StacksRecord, records)),
    )
    return capture, bad_rows


def _joined(parts: Sequence[Mapping[str, Series]]) -> Mapping[str, Series]:
    if len(parts) == 1:
        return parts[0]
    tags = dict.fromkeys(tag for part in parts for tag in part)
    return {tag: _in_order([part[tag] for part in parts if tag in part]) for tag in tags}


def _in_order(pieces: Sequence[Series]) -> Series:
    order = np.argsort(np.concatenate([piece.wall_ns for piece in pieces]), kind="stable")
    return Series(
        np.concatenate([piece.step for piece in pieces])[order],
        np.concatenate([piece.wall_ns for piece in pieces])[order],
        np.concatenate([piece.value for piece in pieces])[order],
    )
