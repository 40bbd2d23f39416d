"""One host's `xplane.pb` as a Trace: scan the file, ask the vocabulary about each name once, read
the events, put the planes together.

The file is read through windows, never whole and never mapped: memory stays flat however long the
file is, and a file that shrinks while it is read cannot kill the process.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from stall_analyzer.decode import vocabulary
from stall_analyzer.decode.assemble import Assembler, Clock
from stall_analyzer.decode.event_columns import (
    TIME_LIMIT_PS,
    UNNAMED_ROWS,
    BytesRead,
    Core,
    LineResult,
    PlaneResult,
    Tables,
)
from stall_analyzer.decode.plane_reader import PlaneReader
from stall_analyzer.decode.scan import ByteWindow, FileCut, LineRange, ScannedFile, scan
from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.model.format import counted
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Plane, Trace
from stall_analyzer.model.units import PS_PER_NS

ENVIRONMENT_PLANE = "Task Environment"
ABSOLUTE_FROM_NS = 10**18  # the year 2001: timestamps beyond are unix times
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def read(
    fd: int,
    host_file: HostFile,
    core: Core,
    progress: BytesRead = lambda _: None,
    in_full: bool = False,
) -> Trace:
    """Raises UnreadableFile when nothing in the file can be used."""
    size = os.fstat(fd).st_size
    shortest_ps = vocabulary.shortest_shown_ps(size) if in_full else None
    if size == 0:
        raise UnreadableFile(f"{host_file.path} is empty")
    scanned = scan(fd, size)
    nothing = f"{host_file.path} is not a profiler trace, or is cut off before its first event"
    if not scanned.known_fields:
        raise UnreadableFile(nothing)
    base_ns, clock = _clock(scanned)
    assembler = Assembler()
    reader = PlaneReader(core, fd, assembler.columns, progress)
    damage = _Damage(scanned.cut, scanned.damaged)
    for plane in scanned.planes:
        lines = [line for line in plane.lines if not vocabulary.drop_line(plane.name, line.name)]
        tables = Tables.of(plane.name, plane.event_names, plane.stat_names, shortest_ps)
        ranges = [(line.begin, line.end, _shift_ps(line, base_ns)) for line in lines]
        result = reader.read(ranges, tables, max(0, UNNAMED_ROWS - damage.unnamed_events))
        damage.add(fd, lines, result, len(tables.names))
        names = [_line_name(fd, line, found)
                 for line, found in zip(lines, result.lines, strict=True)]  # fmt: skip
        assembler.add_plane(
            Plane(plane.name, plane.stats, plane.op_costs),
            [(line.id, name) for line, name in zip(lines, names, strict=True)],
            tables,
            result,
        )
    if damage.hopeless:
        raise UnreadableFile(f"{host_file.path} is damaged: {_how(fd)}")
    if damage.cut and not any(plane.lines for plane in scanned.planes):
        raise UnreadableFile(nothing)
    trace = assembler.trace(host_file, clock, scanned.errors, damage.notes(host_file.path))
    return replace(trace, is_cut=damage.cut)


def time_zero_ns(scanned: ScannedFile) -> int:
    """The timestamp of a line whose events count from the trace's time zero."""
    return _clock(scanned)[0]


def _clock(scanned: ScannedFile) -> tuple[int, Clock]:
    """Which timestamp of a line is the trace's zero, and when that was."""
    timestamps = [line.timestamp_ns for plane in scanned.planes for line in plane.lines
                  if line.has_events]  # fmt: skip
    unix = [timestamp for timestamp in timestamps if timestamp > ABSOLUTE_FROM_NS]
    for plane in scanned.planes:
        start = plane.stats.get("profile_start_time")
        stop = plane.stats.get("profile_stop_time")
        if plane.name == ENVIRONMENT_PLANE and isinstance(start, int):
            clock = Clock(start, stop if isinstance(stop, int) else None)
            # Lines count from the start of profiling, unless they have unix times themselves.
            return (start if unix else 0), clock
    if unix:
        return min(unix), Clock(min(unix))
    return min(timestamps, default=0), Clock()


def _shift_ps(line: LineRange, base_ns: int) -> int:
    """What to add to an event's offset. Absurd timestamps stay absurd but fit in int64: the
    decoder then refuses the events as out of range."""
    shift = (line.timestamp_ns - base_ns) * PS_PER_NS
    return max(-TIME_LIMIT_PS, min(TIME_LIMIT_PS, shift))


def _line_name(fd: int, line: LineRange, found: LineResult) -> str:
    if found.name_end == found.name_begin:
        return line.name
    try:
        return ByteWindow(fd, ahead=0).text(found.name_begin, found.name_end)
    except WireError:
        return line.name


def _ends_there(fd: int, line: LineRange, position: int) -> bool:
    """Whether the line stops at `position` because the file is cut off inside the next field, and
    not because its bytes make no sense."""
    if line.promised_end == line.end:
        return False
    try:
        fields = ByteWindow(fd, ahead=0).fields(position, line.end, cut=True)
        *_, end = next(fields)
        return line.end < end <= line.promised_end
    except FileCut:
        return True
    except WireError:
        return False


@dataclass
class _Damage:
    """What went wrong, and whether enough went right."""

    cut: bool
    places: int  # in which the bytes stopped making sense
    good: int = 0
    bad: int = 0
    line_bytes: int = 0
    lost_bytes: int = 0
    unnamed_kinds: int = 0
    unnamed_events: int = 0

    def add(self, fd: int, lines: list[LineRange], result: PlaneResult, named: int) -> None:
        for line, found in zip(lines, result.lines, strict=True):
            self.good += found.good
            self.bad += found.bad
            self.line_bytes += line.end - line.begin
            if found.stopped_at < line.end and not _ends_there(fd, line, found.stopped_at):
                self.places += 1
                self.lost_bytes += line.end - found.stopped_at
        counts = np.frombuffer(result.totals, np.int64)[::3]
        self.unnamed_kinds += len(result.unnamed)
        self.unnamed_events += int(counts[named:].sum())

    @property
    def hopeless(self) -> bool:
        """Bytes that are not a trace may decode to a few events by luck: a damaged file is trusted
        only if most of its events make sense and more than a tenth of its bytes could be read."""
        faults = self.bad + self.places
        return faults > 0 and (self.good <= faults or self.lost_bytes > 0.9 * self.line_bytes)

    def notes(self, path: str) -> list[Note]:
        texts = []
        if self.cut:
            texts.append(
                "The trace is cut off: the file ends early. Everything before that was read."
            )
        if self.unnamed_kinds:
            lost = (
                "because a trace stores its names last, in the part that was cut off"
                if self.cut
                else "because of damage"
            )
            alone = self.unnamed_kinds == 1
            kinds = "1 kind of event" if alone else f"{self.unnamed_kinds:,} kinds of events"
            texts.append(
                f"Names are missing for {kinds}, {lost}; "
                'each kind is shown as "event" followed by a number.'
            )
        if self.unnamed_events > UNNAMED_ROWS:
            texts.append(
                f"Only the first {UNNAMED_ROWS:,} of {self.unnamed_events:,} nameless events are "
                "shown one by one; the totals count all of them."
            )
        if self.bad:
            texts.append(f"Skipped {counted(self.bad, 'damaged event')} and kept {self.good:,}.")
        if self.places:
            texts.append(
                f"The trace is damaged in {counted(self.places, 'place')}; reading continued after "
                f"that, but some events are missing."
            )
        return [Note("warning", text, path) for text in texts]


def _how(fd: int) -> str:
    """A guess at what happened to a file whose bytes make no sense."""
    os.lseek(fd, 0, os.SEEK_SET)
    head = os.read(fd, 4096)
    if head.count(REPLACEMENT) > 16:
        return (
            "its bytes were converted as if they were text (it is full of U+FFFD). "
            "Copy it again in binary mode"
        )
    return "its contents do not look like a profiler trace (XSpace)"
