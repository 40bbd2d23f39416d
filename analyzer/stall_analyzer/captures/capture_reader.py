"""From the JSON texts of a capture's event files to its records.

A capture is cut off wherever its process was killed, and another version may have written it. What
is not understood becomes a note; all the rest is used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

import numpy as np

from stall_analyzer.captures.capture_format import FORMAT, Kind, Window
from stall_analyzer.captures.capture_records import (
    CaptureNote,
    Dump,
    End,
    Environment,
    Look,
    Mark,
    ModelRecord,
    NativeThreads,
    ProfileRecord,
    Task,
    ThreadStack,
)
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.notes import Note

Json = Mapping[str, object]
Parsed = TypeVar("Parsed")

# The tasks of a cluster that run training steps; the others serve variables or evaluate.
TRAINING_TASKS = ("chief", "master", "worker")
LATEST_NS = 1 << 63  # what fits into int64 (the year 2262)
LEVELS = frozenset({"info", "warning", "error"})


@dataclass
class CaptureFile:
    """What one event file holds of a capture."""

    path: str
    texts: list[str] = field(default_factory=list)
    series: Mapping[str, Series] = field(default_factory=dict)  # by tag, without "stall/"


def read_captures(files: Iterable[CaptureFile], notes: list[Note]) -> tuple[Capture, ...]:
    """One capture per process; the one that leads its cluster first."""
    parts = sorted((_Part(file, notes) for file in files), key=lambda part: part.first_ns)
    parts.sort(key=lambda part: part.process)  # stable: in order of time within a process
    found = [_capture([*members]) for _, members in groupby(parts, key=lambda part: part.process)]
    processes = {(c.environment.host, c.environment.pid) for c in found}
    captures = [capture for capture in found if not _only_helps(capture, processes)]
    for capture in captures:
        where = capture.trace_name
        notes += (Note(note.level, note.text, where) for note in capture.notes)
        notes += (
            Note(
                "warning",
                f"A profile could not be taken: {window.why or 'no reason is known'}.",
                where,
            )
            for window in capture.windows
            if window.what == Window.FAILED
        )
    return tuple(sorted(captures, key=_leaders_first))


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
    """The records of one file, by kind."""

    def __init__(self, file: CaptureFile, notes: list[Note]) -> None:
        self.path, self.series = file.path, file.series
        self.records: dict[str, list[Json]] = {}
        unreadable = 0
        for text in file.texts:
            record = _loaded(text)
            if record is None:
                unreadable += 1
            else:
                self.records.setdefault(_text(record.get("kind")), []).append(record)
        if unreadable:
            text = (
                f"Records of the capture that could not be understood were skipped: {unreadable}."
            )
            notes.append(Note("warning", text, file.path))
        for start in self.of_kind(Kind.START):
            if start.get("format") != FORMAT:
                text = "Another version wrote this capture; what it means may have changed."
                notes.append(Note("warning", text, file.path))

    def of_kind(self, kind: str) -> Sequence[Json]:
        return self.records.get(kind, ())

    @property
    def process(self) -> tuple[str, int]:
        start = self.of_kind(Kind.START)
        if not start:
            return self.path, 0  # whose it is, nothing says
        return _text(start[-1].get("host")), _integer(start[-1].get("pid")) or 0

    @property
    def times_ns(self) -> list[int]:
        walls = [int(at) for s in self.series.values() if len(s) for at in s.wall_ns[[0, -1]]]
        return walls + [ns for records in self.records.values() for r in records if (ns := _ns(r))]

    @property
    def first_ns(self) -> int:
        return min(self.times_ns, default=0)


def _capture(parts: Sequence[_Part]) -> Capture:
    times = [ns for part in parts for ns in part.times_ns]

    def all_of(kind: str, parse: Callable[[Json], Parsed | None]) -> tuple[Parsed, ...]:
        records = sorted((r for part in parts for r in part.of_kind(kind)), key=_ns)
        return tuple(parsed for r in records if (parsed := parse(r)) is not None)

    environments = all_of(Kind.START, _environment)
    models = all_of(Kind.MODEL, _model)
    ends = all_of(Kind.END, lambda r: End(_ns(r), _text(r.get("reason"))))
    return Capture(
        environment=environments[-1] if environments else Environment(),
        model=models[0] if models else None,
        marks=all_of(Kind.MARK, _mark),
        windows=all_of(Kind.WINDOW, _profile),
        beats=all_of(Kind.BEAT, _look),
        dumps=all_of(Kind.DUMP, _dump),
        notes=all_of(Kind.NOTE, _note),
        end=ends[-1] if ends else None,
        first_ns=min(times, default=0),
        last_ns=max(times, default=0),
        series=_joined([part.series for part in parts]),
    )


def _joined(parts: Sequence[Mapping[str, Series]]) -> Mapping[str, Series]:
    """A process may write several files, one after the other."""
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


# ---------------------------------------------------------------- single records


def _loaded(text: str) -> Json | None:
    try:
        record: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_record = isinstance(record, dict) and isinstance(record.get("kind"), str)
    return record if isinstance(record, dict) and is_record and _ns(record) else None


def _environment(record: Json) -> Environment:
    threads, cluster = _object(record.get("threads")), _object(record.get("cluster"))
    cluster = _object(cluster.get("cluster")) or cluster  # TF_CONFIG whole, or its middle
    return Environment(
        host=_text(record.get("host")),
        pid=_integer(record.get("pid")),
        parent=_integer(record.get("parent")),
        task=_task(_object(record.get("task"))),
        training_tasks=tuple(
            Task(kind, index)
            for kind in TRAINING_TASKS
            for index in range(len(_list(cluster.get(kind))))
        ),
        cluster={kind: _texts(addresses) for kind, addresses in cluster.items()},
        tensorflow=_text(record.get("tensorflow")),
        keras=_text(record.get("keras")),
        python=_text(record.get("python")),
        devices=_texts(record.get("devices")),
        cores=_integer(record.get("cores")),
        intra_op_threads=_integer(threads.get("intra_op")),
        inter_op_threads=_integer(threads.get("inter_op")),
        hang_after_s=_number(record.get("hang_after_s")),
    )


def _task(task: Json) -> Task | None:
    index = _integer(task.get("index"))
    return Task(_text(task.get("type")), index) if task and index is not None else None


def _model(record: Json) -> ModelRecord:
    return ModelRecord(
        optimizer=_text(record.get("optimizer")),
        parameters=_integer(record.get("parameters")),
        layers=_texts(record.get("layers")),
        probed=record.get("probed") is True,
        why_not=_text(record.get("why")),
    )


def _mark(record: Json) -> Mark:
    epoch, step = _integer(record.get("epoch")), _integer(record.get("step"))
    return Mark(_ns(record), _text(record.get("what")), epoch, step)


def _profile(record: Json) -> ProfileRecord:
    return ProfileRecord(
        ns=_ns(record),
        what=_text(record.get("what")),
        reason=_text(record.get("reason")),
        session=_text(record.get("session")),
        first_step=_integer(record.get("first_step")),
        last_step=_integer(record.get("last_step")),
        seconds=_number(record.get("seconds")) or 0.0,
        why=_text(record.get("why")),
    )


def _look(record: Json) -> Look | None:
    step, idle_s = _integer(record.get("step")), _number(record.get("idle_s"))
    if step is None or idle_s is None:
        return None
    return Look(
        ns=_ns(record),
        step=step,
        idle_s=idle_s,
        phase=_text(record.get("phase")),
        cpu_s=_number(record.get("cpu_s")),
        threads=_threads(record.get("threads")),
    )


def _dump(record: Json) -> Dump | None:
    look = _look(record)
    if look is None:
        return None
    error, memory = _object(record.get("error")), _object(record.get("memory"))
    numbers = {name: _number(value) for name, value in memory.items()}
    return Dump(
        **vars(look),
        reason=_text(record.get("reason")),
        limit_s=_number(record.get("limit_s")),
        native=tuple(
            NativeThreads(
                name=_text(thread.get("name")),
                state=_text(thread.get("state")),
                wait=_text(thread.get("wait")),
                count=_integer(thread.get("count")) or 1,
            )
            for thread in _objects(record.get("native"))
        ),
        memory={name: number for name, number in numbers.items() if number is not None},
        error_type=_text(error.get("type")),
        error_text=_text(error.get("text")),
        error_frames=_texts(error.get("frames")),
        interpreter_held=record.get("interpreter_held") is True,
    )


def _threads(value: object) -> tuple[ThreadStack, ...]:
    return tuple(
        ThreadStack(
            name=_text(thread.get("name")),
            main=thread.get("main") is True,
            frames=_texts(thread.get("frames")),
            count=_integer(thread.get("count")) or 1,
            wait=_text(thread.get("wait")),
        )
        for thread in _objects(value)
    )


def _note(record: Json) -> CaptureNote | None:
    level, text = _text(record.get("level")), _text(record.get("text"))
    return CaptureNote(level if level in LEVELS else "warning", text) if text else None


# ---------------------------------------------------------------- values of any type


def _ns(record: Json) -> int:
    """0 where it does not say, or says what cannot be."""
    ns = _integer(record.get("ns")) or 0
    return ns if 0 < ns < LATEST_NS else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in _list(value) if isinstance(item, str))


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) else None


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Sequence[Json]:
    return [item for item in _list(value) if isinstance(item, dict)]
