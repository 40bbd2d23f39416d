"""Annotated traces: copies of a session's files with three more lines for XProf's trace viewer:
where the time went, the steps, and where each finding happens.

The lines belong to the host's plane: the viewer does not show planes of other tools next to a
device's. In protobuf, lists and maps grow by appending bytes, so the copy is the original file,
byte for byte, with our bytes inserted after the last byte of that plane, and its length rewritten.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

import numpy as np

from stall_analyzer.align.training_thread import HOST_PLANE
from stall_analyzer.chart.lanes import step_name
from stall_analyzer.decode.scan import ByteWindow, scan
from stall_analyzer.decode.vocabulary import ANNOTATIONS
from stall_analyzer.decode.xplane import time_zero_ns
from stall_analyzer.errors import UsageError, WireError
from stall_analyzer.files import files, wire
from stall_analyzer.model.causes import CAUSES
from stall_analyzer.model.findings import Report
from stall_analyzer.model.intervals import NOTHING, stack
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import HostFile, ProfileSession, Run
from stall_analyzer.model.timeline import AlignedTrace

# Fields of XSpace, XPlane, XLine, XEvent and their metadata.
SPACE_PLANES = 1
PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA = 2, 3, 4
LINE_ID, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS = 1, 2, 3, 4
EVENT_METADATA_ID, EVENT_OFFSET_PS, EVENT_DURATION_PS = 1, 2, 3
METADATA_ID, METADATA_NAME = 1, 2
MAP_KEY, MAP_VALUE = 1, 2

MOST_FINDING_LINES = 8
COPY_BYTES = 1 << 20


class AddedEvent(NamedTuple):
    """An event to add, in window time."""

    name: str
    start_ps: int
    end_ps: int


class Gap(NamedTuple):
    """Where the host's plane is in a file: its key and length, its content, its end."""

    header: int
    begin: int
    end: int


@dataclass(frozen=True)
class Annotation:
    """What to insert into the copy of one file, at which place, and where that copy goes."""

    source: str
    target: str
    gap: Gap
    addition: bytes


def annotations_of(report: Report) -> list[Annotation]:
    """One for each trace that can be annotated: truncated traces and old JSON traces cannot."""
    found = []
    for session in report.run.sessions:
        for host_file in session.hosts:
            aligned = _aligned(report, host_file)
            if host_file.format == "xplane" and aligned is not None:
                target = str(_folder(report.run, session) / files.split(host_file.path)[1])
                with suppress(WireError):
                    found.append(_annotation(report, aligned, target))
    return found


def write_copies(annotations: Iterable[Annotation], folder: Path) -> list[Path]:
    """The annotated files. Raises UsageError if they cannot be written."""
    written = []
    for annotation in annotations:
        target = folder / annotation.target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with files.open_binary(annotation.source) as original, target.open("xb") as copy:
                _copy_with(annotation, original, copy)
        except OSError as error:
            raise UsageError(f"cannot write {target}: {error.strerror or error}") from error
        written.append(target)
    return written


def _copy_with(annotation: Annotation, original: BinaryIO, copy: BinaryIO) -> None:
    header, begin, end = annotation.gap
    _copy(original, copy, header)
    original.seek(begin)
    copy.write(wire.bytes_header(SPACE_PLANES, end - begin + len(annotation.addition)))
    _copy(original, copy, end - begin)
    copy.write(annotation.addition)
    shutil.copyfileobj(original, copy, COPY_BYTES)


def _copy(original: BinaryIO, copy: BinaryIO, size: int) -> None:
    while size > 0 and (data := original.read(min(size, COPY_BYTES))):
        copy.write(data)
        size -= len(data)


def check_folder(folder: Path, logdirs: Sequence[str]) -> None:
    """Log directories are read-only, and nothing is overwritten."""
    place = folder.resolve()
    for logdir in logdirs:
        if not files.is_url(logdir) and place.is_relative_to(Path(logdir).resolve()):
            raise UsageError(f"cannot write into {folder}: it is inside the log directory {logdir}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"cannot write into {folder}: it exists and is not an empty folder")


def _folder(run: Run, session: ProfileSession) -> PurePosixPath:
    """As in the log directory, so that TensorBoard finds it, wherever the original file is."""
    inside = files.absolute_parts(session.path)[len(files.absolute_parts(run.path)) :]
    if inside[-3:-1] != ("plugins", "profile"):
        inside = ("plugins", "profile", PurePosixPath(session.id).name)
    return PurePosixPath(run.name, *inside)


def _aligned(report: Report, host_file: HostFile) -> AlignedTrace | None:
    """None for a file that could not be read."""
    traces = report.timeline.traces
    return next((a for a in traces if a.path == host_file.path), None)


def _annotation(report: Report, aligned: AlignedTrace, target: str) -> Annotation:
    path = aligned.path
    host = next(host for host in report.hosts if host.host == aligned.host)
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  the scanner needs the number
        size = file.seek(0, os.SEEK_END)
        scanned = scan(file.fileno(), size)
        gap = _host_plane(ByteWindow(file.fileno()), size)
    planes = [plane for plane in scanned.planes if plane.name == HOST_PLANE]
    lines = _Lines(
        time_zero_ns(scanned),
        aligned.shift_ps,
        first_name=max((0, *(number for plane in planes for number in plane.event_names))) + 1,
        taken={line.id for plane in planes for line in plane.lines},
    )
    steps = report.timeline.steps
    lines.add("buckets", _causes(host))
    lines.add("steps", [AddedEvent(step_name(step), step.start_ps, step.end_ps) for step in steps])
    for number, marks in enumerate(_finding_lines(report, host.host), start=1):
        lines.add("findings" if number == 1 else f"findings {number}", marks)
    named = b"" if planes else wire.bytes_field(PLANE_NAME, HOST_PLANE.encode())
    return Annotation(path, target, gap, named + lines.to_bytes())


def _host_plane(window: ByteWindow, size: int) -> Gap:
    """If no host was traced, the end of the file, where a new plane can begin."""
    header = 0
    for number, wire_type, begin, end in window.fields(0, size):
        if number == SPACE_PLANES and wire_type == wire.BYTES:
            for inner, _, start, stop in window.fields(begin, end):
                if inner == PLANE_NAME:
                    if window.text(start, stop) == HOST_PLANE:
                        return Gap(header, begin, end)
                    break
        header = end
    return Gap(size, size, size)


def _causes(host: HostLedger) -> list[AddedEvent]:
    bounds, causes = host.ledger.bounds_ps.tolist(), host.ledger.cause.tolist()
    return [
        AddedEvent(CAUSES[cause], start, end)
        for cause, start, end in zip(causes, bounds[:-1], bounds[1:], strict=True)
    ]


def _finding_lines(report: Report, host: str) -> list[list[AddedEvent]]:
    """As many lines as needed: findings may overlap, but events of a line may not."""
    marks = [
        AddedEvent(
            f"{finding.id} {evidence.label or finding.title}", evidence.start_ps, evidence.end_ps
        )
        for finding in report.findings
        for evidence in finding.evidence
        if evidence.host == host
    ]
    marks.sort(key=lambda mark: mark.start_ps)
    start, end = (np.array([mark[field] for mark in marks], dtype=np.int64) for field in (1, 2))
    rows = stack(start, end, MOST_FINDING_LINES).tolist()
    lines = range(max(rows, default=NOTHING) + 1)
    return [[m for m, row in zip(marks, rows, strict=True) if row == line] for line in lines]


class _Lines:
    """Grows line by line; numbers lines and names so that they do not clash with the plane's
    own."""

    def __init__(self, zero_ns: int, shift_ps: int, first_name: int, taken: set[int]) -> None:
        self._zero_ns, self._shift_ps = zero_ns, shift_ps
        self._first_name = first_name
        self._free = (number for number in count(1) if number not in taken)
        self._names: dict[str, int] = {}
        self._lines: list[bytes] = []

    def add(self, name: str, marks: Sequence[AddedEvent]) -> None:
        parts = [
            wire.number_field(LINE_ID, next(self._free)),
            wire.bytes_field(LINE_NAME, f"{ANNOTATIONS}{name}".encode()),
            wire.number_field(LINE_TIMESTAMP_NS, self._zero_ns),
            *(wire.bytes_field(LINE_EVENTS, event) for event in map(self._event, marks) if event),
        ]
        self._lines.append(b"".join(parts))

    def _event(self, mark: AddedEvent) -> bytes:
        """Empty for something before the trace: an event cannot begin before its line."""
        start = max(mark.start_ps - self._shift_ps, 0)
        duration = mark.end_ps - self._shift_ps - start
        if duration <= 0:
            return b""
        number = self._names.setdefault(mark.name, self._first_name + len(self._names))
        return (
            wire.number_field(EVENT_METADATA_ID, number)
            + wire.number_field(EVENT_OFFSET_PS, start)
            + wire.number_field(EVENT_DURATION_PS, duration)
        )

    def to_bytes(self) -> bytes:
        """As fields of a plane."""
        metadata = (
            wire.number_field(MAP_KEY, number)
            + wire.bytes_field(
                MAP_VALUE,
                wire.number_field(METADATA_ID, number)
                + wire.bytes_field(METADATA_NAME, name.encode("utf-8", "replace")),
            )
            for name, number in self._names.items()
        )
        parts = [
            *(wire.bytes_field(PLANE_LINES, line) for line in self._lines),
            *(wire.bytes_field(PLANE_EVENT_METADATA, entry) for entry in metadata),
        ]
        return b"".join(parts)
