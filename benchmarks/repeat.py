"""Makes a huge trace out of a real one: repeats the events of every line, each time later.

No training run writes gigabytes in reasonable time, so the events are real but repeated. The file
keeps the real layout (tables after the lines) and is written as a stream. Offsets are padded to the
same width, which protobuf allows, so that each repetition only overwrites bytes. Ids of steps and
of their links get different low bits in each repetition, so that steps stay distinct.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from stall_analyzer.decode.scan import LineRange, scan
from stall_analyzer.files import wire

OFFSET_BYTES = 8  # in a varint: up to twenty hours
STEP_STATS = frozenset({"id", "step_id", "_p", "_c"})
MAX_REPETITIONS = 127  # as many as the low bits of an id can tell apart
LONG_ID = 5  # bytes; shorter values are counters, not ids of steps
MINUS_ONE = (1 << 64) - 1  # the id of constant folding, which belongs to no step
HOST = b"/host:CPU"


def repeat(source: Path, target: Path, size: int) -> int:
    """Writes `target` with at least `size` bytes; returns how often the events are repeated."""
    data = source.read_bytes()
    with source.open("rb") as file:
        planes = scan(file.fileno(), len(data)).planes
    host = next(plane for plane in planes if plane.name.encode() == HOST)
    step_stats = {key for key, name in host.stat_names.items() if name in STEP_STATS}
    lines = [_Line(data, line, step_stats) for line in host.lines]
    times = -(-size // sum(len(line.events) for line in lines))
    period_ps = max(line.end_ps for line in lines) // 1000 * 1000 + 1000
    if times > MAX_REPETITIONS or times * period_ps >= 1 << 7 * OFFSET_BYTES:
        raise ValueError(f"{source} cannot be repeated {times} times")
    with target.open("wb") as out:
        for number, _, begin, end in wire.fields(data, 0, len(data)):
            part = data[begin:end]
            if number == 1 and HOST in part[:64]:
                _write_host(out, part, lines, times, period_ps)
                continue
            for plane in planes:
                start, stop = (
                    plane.stats.get(f"profile_{what}_time") for what in ("start", "stop")
                )
                if isinstance(start, int) and isinstance(stop, int):
                    later = start + times * period_ps // 1000
                    part = part.replace(_varint(stop), _varint(later))  # both nine bytes
            out.write(_block(number, len(part)) + part)
    return times


class _Line:
    """A line taken apart, so that its events can be written again at other times."""

    def __init__(self, data: bytes, line: LineRange, step_stats: set[int]) -> None:
        events = bytearray()
        self.header, self.trailer = b"", b""  # fields before and after the events
        self.end_ps = 0
        offsets: list[int] = []
        offset_at: list[int] = []
        id_at: list[int] = []
        position = line.begin
        for number, _, start, end in wire.fields(data, line.begin, line.end):
            if number == 4:
                event_id, offset, duration, rest = _take_apart(data, start, end)
                self.end_ps = max(self.end_ps, offset + duration)
                size = len(event_id) + 1 + OFFSET_BYTES + end - rest
                events += _block(4, size) + event_id + b"\x10" + bytes(OFFSET_BYTES)
                offsets.append(offset)
                offset_at.append(len(events) - OFFSET_BYTES)
                id_at += [len(events) + at - rest for at in _ids(data, rest, end, step_stats)]
                events += data[rest:end]
            elif events:
                self.trailer += data[position:end]
            else:
                self.header += data[position:end]
            position = end
        self.events = np.frombuffer(events, np.uint8)
        self._offsets = np.array(offsets, np.int64)
        self._offset_at = np.array(offset_at, np.int64)
        self._id_at = np.array(id_at, np.int64)

    def size(self, times: int) -> int:
        return len(self.header) + times * len(self.events) + len(self.trailer)

    def repetition(self, number: int, period_ps: int) -> npt.NDArray[np.uint8]:
        events = self.events.copy()
        offsets = self._offsets + number * period_ps
        for i in range(OFFSET_BYTES):
            more = 0x80 if i < OFFSET_BYTES - 1 else 0
            events[self._offset_at + i] = (offsets >> 7 * i & 0x7F) | more
        events[self._id_at] ^= number
        return events


def _take_apart(data: bytes, begin: int, end: int) -> tuple[bytes, int, int, int]:
    """The id as written, offset, duration, and where the part after the offset begins."""
    event_id, offset, duration, rest = b"", 0, 0, begin
    for number, _, value, stop in wire.fields(data, begin, end):
        if number == 1:
            event_id, rest = data[begin:stop], stop
        elif number == 2:
            offset, rest = value, stop
        else:
            duration = value if number == 3 else 0
            break
    return event_id, offset, duration, rest


def _ids(data: bytes, begin: int, end: int, step_stats: set[int]) -> list[int]:
    """The places of the first bytes of step ids."""
    found = []
    for number, wire_type, start, stop in wire.fields(data, begin, end):
        if number == 4 and wire_type == wire.BYTES:
            key, position = 0, start
            for part, _, value, after in wire.fields(data, start, stop):
                if part == 1:
                    key = value
                elif key in step_stats and after - position > LONG_ID and value != MINUS_ONE:
                    found.append(position + 1)
                position = after
    return found


def _write_host(
    out: BinaryIO, plane: bytes, lines: list[_Line], times: int, period_ps: int
) -> None:
    before, after, position = b"", b"", 0
    for number, _, _, end in wire.fields(plane, 0, len(plane)):
        if number < 3:
            before += plane[position:end]
        elif number > 3:
            after = plane[position:]
            break
        position = end
    sizes = [line.size(times) for line in lines]
    total = len(before) + len(after) + sum(len(_block(3, size)) + size for size in sizes)
    out.write(_block(1, total) + before)
    for line, size in zip(lines, sizes, strict=True):
        out.write(_block(3, size) + line.header)
        for number in range(times):
            out.write(line.repetition(number, period_ps).data)
        out.write(line.trailer)
    out.write(after)


def _block(number: int, size: int) -> bytes:
    return _varint(number << 3 | wire.BYTES) + _varint(size)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
