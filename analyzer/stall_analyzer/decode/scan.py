"""What an XSpace file contains: planes, their tables and where their lines are, but no events.

The tables that give events their names are written after the lines, so this first pass steps over
the lines (it reads their headers only) and takes about a millisecond whatever the file's size. Most
of what it reads are names: _xplane (native) reads them if pip could build it, up to the first entry
that is not as expected.

A file can end early (the job was killed, the disk was full) or be damaged. Both are detected here:
if a field is longer than the file, the file is cut off; anything else that makes no sense is
damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial

from stall_analyzer.errors import WireError
from stall_analyzer.files import wire
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.trace import OpCost, StatValue

FIELD_HEADER_BYTES = 20  # room for the longest key and number
SMALL_ENTRY = 4096  # bytes of a metadata entry that are worth reading at once
ANYTHING = 1 << 64  # nothing says how long the file should be
DEVICE_PLANE = "/device:"
MAIN_MEMORY = 1  # in an op's breakdown of memory traffic: the device's own memory, HBM

try:
    from stall_analyzer.decode._xplane import read_names
except ImportError:  # no C compiler when this was installed, or an older build
    HAS_NATIVE = False
else:
    HAS_NATIVE = True


class FileCut(WireError):
    """The file ends where more was promised."""


class ByteWindow:
    """The part of a file that is in memory right now."""

    def __init__(self, fd: int, ahead: int = 64 << 10) -> None:
        self._fd = fd
        self._ahead = ahead
        self._begin = 0
        self.data = b""

    def find(self, position: int, size: int) -> int:
        """Where in `data` the `size` bytes at `position` are; WireError when the file is short."""
        skip = position - self._begin
        if skip < 0 or skip + size > len(self.data):
            os.lseek(self._fd, position, os.SEEK_SET)
            wanted = max(size, self._ahead)
            chunks = []
            while wanted > 0 and (chunk := os.read(self._fd, wanted)):
                chunks.append(chunk)
                wanted -= len(chunk)
            self._begin, self.data = position, b"".join(chunks)
            skip = 0
            if len(self.data) < size:
                raise FileCut("the file ends early")
        return skip

    def bytes(self, begin: int, end: int) -> bytes:
        at = self.find(begin, end - begin)
        return self.data[at : at + end - begin]

    def text(self, begin: int, end: int) -> str:
        return self.bytes(begin, end).decode("utf-8", "replace")

    def double(self, begin: int) -> float:
        return wire.double(self.bytes(begin, begin + 8), 0)

    def fields(self, begin: int, end: int, *, cut: bool = False) -> Iterator[wire.Field]:
        """Like wire.fields, with positions in the file. With `cut`, the message continues after
        `end`: its last field may reach beyond it, and FileCut is raised if not even its key is
        there."""
        position = begin
        while position < end:
            wanted = min(FIELD_HEADER_BYTES, end - position)
            at = self.find(position, wanted)
            try:
                number, wire_type, value, size, after = _field_header(self.data, at, at + wanted)
            except WireError as error:
                if cut and wanted < FIELD_HEADER_BYTES:
                    raise FileCut("the file ends inside a field") from error
                raise
            position += after - at
            if size > end - position and not cut:
                raise WireError("a field is longer than its message")
            start = value if wire_type == wire.VARINT else position
            position += size
            yield number, wire_type, start, position


def _field_header(data: bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    """Field number, wire type, value (of a varint), size of the payload, position after."""
    key, after = wire.varint(data, at, end)
    number, wire_type = key >> 3, key & 7
    if number == 0:
        raise WireError("field number 0")
    if wire_type == wire.VARINT:
        value, after = wire.varint(data, after, end)
        return number, wire_type, value, 0, after
    size, after = wire.payload(data, wire_type, after, end)
    return number, wire_type, 0, size, after


@dataclass(frozen=True)
class LineRange:
    """Where a line is in the file."""

    begin: int
    end: int
    id: int
    name: str
    timestamp_ns: int
    has_events: bool
    promised_end: int  # beyond `end` if the file is cut off inside the line


@dataclass
class ScannedPlane:
    """A plane without its events."""

    name: str = ""
    lines: list[LineRange] = field(default_factory=list)
    event_names: dict[int, str] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: dict[str, StatValue] = field(default_factory=dict)
    op_costs: dict[str, OpCost] = field(default_factory=dict)


@dataclass
class ScannedFile:
    """A file without its events."""

    planes: list[ScannedPlane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cut: bool = False
    damaged: int = 0  # places where the bytes made no sense
    known_fields: int = 0  # fields that an XSpace has: none means that this is not one


def scan(fd: int, size: int) -> ScannedFile:
    scanner = _Scanner(fd, size)
    scanner.read_space()
    return scanner.found


class _Scanner:
    def __init__(self, fd: int, size: int) -> None:
        self.window = ByteWindow(fd)
        self.size = size
        self.found = ScannedFile()
        self.is_native = HAS_NATIVE and os.environ.get("STALL_PURE_PYTHON") != "1"

    def parts(self, begin: int, promised_end: int) -> Iterator[tuple[int, int, int]]:
        """(number, begin, end) of the length-delimited fields of a message. If the bytes stop
        making sense, that is recorded and the fields end; the last one may reach beyond the
        file."""
        end, cut = min(promised_end, self.size), promised_end > self.size
        try:
            for number, wire_type, start, stop in self.window.fields(begin, end, cut=cut):
                if wire_type == wire.BYTES:
                    if stop > promised_end:
                        raise WireError("a field is longer than its message")
                    self.found.cut |= stop > self.size
                    yield number, start, stop
        except FileCut:
            self.found.cut = True
        except WireError:
            self.found.damaged += 1

    def read_space(self) -> None:
        for number, begin, end in self.parts(0, ANYTHING):
            self.found.known_fields += 1 <= number <= 4
            if number == 1:
                self.found.planes.append(self.plane(begin, end))
            elif number == 2 and end <= self.size:
                self.found.errors.append(self.window.text(begin, end))

    def plane(self, begin: int, end: int) -> ScannedPlane:
        plane = ScannedPlane()
        stats: list[tuple[int, int]] = []
        kinds: list[tuple[int, int]] = []
        for number, start, stop in self.plane_parts(plane, kinds, begin, end):
            if number == 3:
                plane.lines.append(self.line(start, stop))
            elif stop > self.size:
                pass  # names and stats are useful only if complete
            elif number == 2:
                plane.name = self.window.text(start, stop)
            elif number in {4, 5}:
                key, name = self.map_entry(start, stop)
                (plane.event_names if number == 4 else plane.stat_names)[key] = name
                if number == 4:
                    kinds.append((start, stop))
            elif number == 6:
                stats.append((start, stop))
        # The names of stats may come after the stats.
        plane.stats.update(self.stat(plane, start, stop) for start, stop in stats)
        if plane.name.startswith(DEVICE_PLANE) and "bytes_accessed" in plane.stat_names.values():
            for start, stop in kinds:
                self.read_cost(plane, start, stop)
        return plane

    def plane_parts(
        self, plane: ScannedPlane, kinds: list[tuple[int, int]], begin: int, end: int
    ) -> Iterator[tuple[int, int, int]]:
        """Like `parts`, without the names, which can be read many at a time."""
        while True:
            begin = self.take_names(plane, kinds, begin, min(end, self.size))
            part = next(self.parts(begin, end), None)
            if part is None:
                return
            yield part
            begin = part[2]

    def take_names(
        self, plane: ScannedPlane, kinds: list[tuple[int, int]], begin: int, end: int
    ) -> int:
        """Reads entries of the two metadata maps, as far as they are in memory. Returns where they
        end."""
        if not self.is_native or begin >= end:
            return begin
        at = self.window.find(begin, 1)
        before, after = begin - at, begin
        last = min(len(self.window.data), end - before)
        for number, start, stop, key, name in read_names(self.window.data, at, last):
            (plane.event_names if number == 4 else plane.stat_names)[key] = name
            after = before + stop
            if number == 4:
                kinds.append((before + start, after))
        return after

    def line(self, begin: int, end: int) -> LineRange:
        """The header of a line: what comes before its first event."""
        line_id = timestamp_ns = 0
        name = ""
        has_events = False
        try:
            for number, wire_type, start, stop in self.window.fields(
                begin, min(end, self.size), cut=end > self.size
            ):
                if number == 4 and wire_type == wire.BYTES:
                    has_events = True
                    break
                if number == 1 and wire_type == wire.VARINT:
                    line_id = wire.signed(start)
                elif number == 2 and wire_type == wire.BYTES and stop <= self.size:
                    name = self.window.text(start, stop)
                elif number == 3 and wire_type == wire.VARINT:
                    timestamp_ns = wire.signed(start)
        except WireError:
            pass  # the second pass meets the same bytes and counts them
        return LineRange(begin, min(end, self.size), line_id, name, timestamp_ns, has_events, end)

    def map_entry(self, begin: int, end: int) -> tuple[int, str]:
        """Key and name of an entry of the two metadata maps."""
        if end - begin > SMALL_ENTRY:  # it may contain a whole compiled program
            return self.entry(self.window.fields, self.window.text, begin, end)
        data = self.window.bytes(begin, end)
        return self.entry(partial(wire.fields, data), partial(wire.text, data), 0, len(data))

    def entry(
        self,
        fields: Callable[[int, int], Iterator[wire.Field]],
        text: Callable[[int, int], str],
        begin: int,
        end: int,
    ) -> tuple[int, str]:
        key, name, display_name = 0, "", ""  # key 0 is not written
        try:
            for number, wire_type, start, stop in fields(begin, end):
                if number == 1 and wire_type == wire.VARINT:
                    key = wire.signed(start)
                elif number == 2 and wire_type == wire.BYTES:
                    for part, part_type, text_begin, text_end in fields(start, stop):
                        if part == 2 and part_type == wire.BYTES:
                            name = text(text_begin, text_end)
                        elif part == 4 and part_type == wire.BYTES:
                            display_name = text(text_begin, text_end)
        except WireError:
            self.found.damaged += 1
        return key, name or display_name

    def read_cost(self, plane: ScannedPlane, begin: int, end: int) -> None:
        """What the compiler knows about an op is stored once, with its name, not with its
        events."""
        name = ""
        stats: dict[str, StatValue] = {}
        try:
            for number, wire_type, start, stop in self.window.fields(begin, end):
                if number != 2 or wire_type != wire.BYTES:
                    continue
                for part, part_type, at, to in self.window.fields(start, stop):
                    if part == 2 and part_type == wire.BYTES:
                        name = self.window.text(at, to)
                    elif part == 5 and part_type == wire.BYTES:
                        stats.update([self.stat(plane, at, to)])
        except WireError:
            return  # counted when the names were read
        moved = _main_memory_bytes(stats)
        if moved is not None:
            plane.op_costs[name] = OpCost(moved)

    def stat(  # noqa: C901  one branch for each field
        self, plane: ScannedPlane, begin: int, end: int
    ) -> tuple[str, StatValue]:
        """Name and value of a stat; one without a value, or damaged, is the empty text."""
        key = 0
        value: StatValue = ""
        try:
            for number, wire_type, start, stop in self.window.fields(begin, end):
                if wire_type == wire.VARINT:
                    if number == 1:
                        key = wire.signed(start)
                    elif number == 3:
                        value = start
                    elif number == 4:
                        value = wire.signed(start)
                    elif number == 7:
                        value = plane.stat_names.get(wire.signed(start), "")
                elif number == 2 and wire_type == wire.FIXED64:
                    value = self.window.double(start)
                elif number == 5 and wire_type == wire.BYTES:
                    value = self.window.text(start, stop)
                elif number == 6 and wire_type == wire.BYTES:
                    value = self.window.bytes(start, stop)
        except WireError:
            self.found.damaged += 1
        return plane.stat_names.get(key, f"stat {key}"), value


def _main_memory_bytes(stats: Mapping[str, StatValue]) -> int | None:
    """Traffic with the device's main memory: from the breakdown by memory, or else all of it."""
    breakdown, accessed = stats.get("memory_access_breakdown"), stats.get("bytes_accessed")
    if not isinstance(breakdown, bytes) or not breakdown:
        return accessed if isinstance(accessed, int) else None
    moved = 0
    try:
        for number, wire_type, start, stop in wire.fields(breakdown, 0, len(breakdown)):
            if number == 1 and wire_type == wire.BYTES:
                part = {n: value for n, _, value, _ in wire.fields(breakdown, start, stop)}
                moved += part.get(3, 0) if part.get(2) == MAIN_MEMORY else 0
    except WireError:
        return None
    return moved
