"""Writes small XSpace files for tests, field by field, without the protobuf library."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest

from stall_analyzer.decode import pure, xplane
from stall_analyzer.decode.event_columns import BytesRead, Core
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Trace

Value: TypeAlias = "int | float | str | bytes | Ref"


@dataclass(frozen=True)
class Ref:
    """A text that is stored as the name of a stat."""

    text: str


@dataclass(frozen=True)
class Event:
    name: str
    start_ns: float
    duration_ns: float
    stats: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    name: str
    events: Sequence[Event]
    timestamp_ns: int = 0
    id: int = 1
    display_name: str = ""


def varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value) if value else b""


def block(field_number: int, payload: bytes) -> bytes:
    return varint(field_number << 3 | 2) + varint(len(payload)) + payload


class Plane:
    """Numbers names and stats in order of appearance, as the profiler does."""

    def __init__(self, name: str, first_id: int = 0) -> None:
        self.name = name
        self._first_id = first_id
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}

    def _stat(self, name: str, value: Value) -> bytes:
        key = number(1, self._stat_id(name))
        if isinstance(value, Ref):
            return key + varint(7 << 3) + varint(self._stat_id(value.text))
        if isinstance(value, float):
            return key + varint(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, str):
            return key + block(5, value.encode())
        if isinstance(value, bytes):
            return key + block(6, value)
        return key + varint(4 << 3) + varint(value)

    def _stat_id(self, name: str) -> int:
        return self._stats.setdefault(name, len(self._stats) + self._first_id)

    def event(self, event: Event) -> bytes:
        key = self._events.setdefault(event.name, len(self._events) + self._first_id)
        stats = (block(4, self._stat(name, value)) for name, value in event.stats.items())
        return (
            number(1, key)
            + number(2, round(event.start_ns * 1000))
            + number(3, round(event.duration_ns * 1000))
            + b"".join(stats)
        )

    def line(self, line: Line) -> bytes:
        return (
            number(1, line.id)
            + block(2, line.name.encode())
            + number(3, line.timestamp_ns)
            + b"".join(block(4, self.event(event)) for event in line.events)
            + (block(11, line.display_name.encode()) if line.display_name else b"")
        )

    def to_bytes(
        self,
        lines: Sequence[Line],
        stats: Mapping[str, Value] | None = None,
        kinds: Mapping[str, Mapping[str, Value]] | None = None,
    ) -> bytes:
        """`kinds`: stats that belong to all events of a name."""
        body = block(2, self.name.encode()) + b"".join(block(3, self.line(line)) for line in lines)
        plane_stats = [block(6, self._stat(name, value)) for name, value in (stats or {}).items()]
        of_kind = {
            name: b"".join(block(5, self._stat(stat, value)) for stat, value in mine.items())
            for name, mine in (kinds or {}).items()
        }
        for field_number, names in ((4, self._events), (5, self._stats)):
            for name, key in names.items():
                extra = of_kind.get(name, b"") if field_number == 4 else b""
                entry = number(1, key) + block(2, number(1, key) + block(2, name.encode()) + extra)
                body += block(field_number, entry)
        return body + b"".join(plane_stats)


def space(*planes: bytes, errors: Sequence[str] = ()) -> bytes:
    return b"".join(block(1, plane) for plane in planes) + b"".join(
        block(2, error.encode()) for error in errors
    )


def host_space(*lines: Line) -> bytes:
    return space(Plane("/host:CPU").to_bytes(lines))


def host_file(path: object, size: int = 0) -> HostFile:
    return HostFile("vm", str(path), "xplane", size)


def read_with(core: Core, path: object, progress: BytesRead = lambda _: None) -> Trace:
    with open(str(path), "rb", buffering=0) as file:  # noqa: PTH123  decode needs the number
        return xplane.read(file.fileno(), host_file(path), core, progress)


def read_pure(path: object) -> Trace:
    """Reads a trace with the pure decoder, including names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STALL_PURE_PYTHON", "1")
        return read_with(pure.read_plane, path)
