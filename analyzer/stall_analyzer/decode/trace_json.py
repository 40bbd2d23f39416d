"""One host's `trace.json.gz` as a Trace: the Chrome format that TensorFlow 2.0 to 2.2 wrote.

Events are parsed one by one while the file is unpacked, so a truncated file yields all that comes
before the cut, and memory holds the events that matter rather than the whole document.
"""

from __future__ import annotations

import codecs
import json
import re
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import field
from itertools import chain, islice
from typing import Any, BinaryIO, NoReturn

from stall_analyzer.decode import vocabulary
from stall_analyzer.decode.assemble import Assembler, Clock
from stall_analyzer.decode.event_columns import (
    KIND_DOUBLE,
    KIND_INT,
    KIND_TEXT,
    PINNED_STATS,
    STAT_NAMES,
    TEXT_LIMIT,
    TIME_LIMIT_PS,
    BytesRead,
    LineResult,
    PlaneResult,
    Tables,
)
from stall_analyzer.decode.nest import Event, Rules, Totals, write_line
from stall_analyzer.decode.pytorch_trace import is_pytorch, summed_up
from stall_analyzer.errors import ForeignFile, UnreadableFile
from stall_analyzer.files import wire
from stall_analyzer.model.format import counted
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Plane, Trace
from stall_analyzer.model.units import PS_PER_US

CHUNK = 1 << 16  # compressed bytes; about ten times as much text
ITEM_LIMIT = 8 << 20
GZIP_MAGIC = b"\x1f\x8b"
_COLUMN = {name: i for i, name in enumerate(STAT_NAMES)}
_BEGINNING = re.compile(r'"traceEvents"\s*:\s*\[')
_SEPARATOR = re.compile(r"[\s,]*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
HEADER_LIMIT = 1 << 16  # characters before the first event that are read
FIRST_EVENTS = 100  # enough to tell whose they are
MOST_EVENTS = 1_000_000  # the most that TensorFlow wrote; each takes a few hundred bytes here
MOST_TEXT = 256 << 20  # characters of their names and values that are kept
UNPACKED = 1 << 20  # bytes at once: a gigabyte of spaces is a megabyte when compressed


def read(file: BinaryIO, host_file: HostFile, progress: BytesRead = lambda _: None) -> Trace:
    """Raises UnreadableFile when the file holds no trace, ForeignFile when it is PyTorch's."""
    source = _Source(file, progress)
    document = _Document()
    items = source.events()
    first = list(islice(items, FIRST_EVENTS))
    if is_pytorch(source.header, first):
        _give_up(host_file, chain(first, items))
    is_full = False
    for item in chain(first, items):
        document.add(item)
        if document.good >= MOST_EVENTS or document.text > MOST_TEXT:
            is_full = True
            break
    if source.size == 0:
        raise UnreadableFile(f"{host_file.path} is empty")
    if not source.began:
        raise UnreadableFile(
            f"{host_file.path} is not a Chrome trace, or is cut off before its first event"
        )
    notes = []
    if is_full or source.cut:
        text = (
            f"The trace is too large: only its first {document.good:,} events were read."
            if is_full
            else "The trace is cut off, or damaged from some point on. Everything before that was "
            "read."
        )
        notes.append(Note("warning", text, host_file.path))
    assembler = Assembler()
    document.assemble(assembler)
    if document.bad:
        text = f"Skipped {counted(document.bad, 'damaged event')} and kept {document.good:,}."
        notes.append(Note("warning", text, host_file.path))
    return assembler.trace(host_file, Clock(), (), notes)


def _give_up(host_file: HostFile, items: Iterator[object]) -> NoReturn:
    summary = summed_up(items, host_file.host)
    raise ForeignFile(
        f"{host_file.path} is a trace of PyTorch's profiler. It was recognized, but not analyzed: "
        f"this tool reads TensorFlow's profiles",
        summary,
    )


class _Source:
    """The items of `traceEvents`, in the order of the file."""

    def __init__(self, file: BinaryIO, progress: BytesRead) -> None:
        self._file = file
        self._progress = progress
        self.size = 0
        self.began = False
        self.header = ""  # what comes before the first one
        self.cut = False

    def events(self) -> Iterator[object]:
        decoder = json.JSONDecoder()
        text, at = "", 0
        for chunk in self._texts():
            text = text[at:] + chunk
            at = 0
            if not self.began:
                beginning = _BEGINNING.search(text)
                if not beginning and len(text) > ITEM_LIMIT:
                    return  # no trace has that much before its events
                if not beginning:
                    continue
                self.began = True
                self.header = text[: min(beginning.start(), HEADER_LIMIT)]
                at = beginning.end()
            while True:
                separator = _SEPARATOR.match(text, at)
                at = separator.end() if separator else at
                if text.startswith("]", at):
                    return
                try:
                    item, at = decoder.raw_decode(text, at)
                except ValueError:
                    break  # it continues in the next chunk
                except RecursionError:  # nested deeper than anything that a profiler writes
                    self.cut = True
                    return
                yield item
            if len(text) - at > ITEM_LIMIT:
                break  # no event is that long, so the rest is damaged
        self.cut = True

    def _texts(self) -> Iterator[str]:
        """The decompressed file, up to where it is cut off."""
        packed = self._file.read(len(GZIP_MAGIC))
        unpack = zlib.decompressobj(wbits=31) if packed == GZIP_MAGIC else None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while packed:
            self.size += len(packed)
            self._progress(self.size)
            try:
                if unpack is None:
                    yield decoder.decode(packed)
                else:
                    yield decoder.decode(unpack.decompress(packed, UNPACKED))
                    while unpack.unconsumed_tail:
                        yield decoder.decode(unpack.decompress(unpack.unconsumed_tail, UNPACKED))
            except zlib.error:
                return
            packed = self._file.read(CHUNK)


@dataclass
class _JsonThread:
    """A thread of a process in the Chrome format."""

    name: str = ""
    # start_ps, duration_ps, name, kept stats as (column, value)
    events: list[tuple[int, int, str, tuple[tuple[int, object], ...]]] = field(default_factory=list)


@dataclass
class _JsonProcess:
    """A process in the Chrome format; TensorFlow writes a device as one."""

    name: str = ""
    lines: dict[int, _JsonThread] = field(default_factory=dict)


class _Document:
    """What has been read so far: processes are planes, threads are lines."""

    def __init__(self) -> None:
        self.processes: dict[int, _JsonProcess] = {}
        self.good = self.bad = 0
        self.text = 0  # characters that are kept

    def add(self, item: object) -> None:
        if not isinstance(item, dict) or item.get("ph") not in ("M", "X"):
            return
        try:
            if item["ph"] == "M":
                self._add_name(item)
            else:
                self._add_event(item)
                self.good += 1
        except (KeyError, TypeError, ValueError, OverflowError):
            self.bad += 1

    def _line(self, item: dict[str, Any]) -> _JsonThread:
        process = self.processes.setdefault(int(item["pid"]), _JsonProcess())
        return process.lines.setdefault(int(item["tid"]), _JsonThread())

    def _add_name(self, item: dict[str, Any]) -> None:
        if item["name"] == "process_name":
            process = self.processes.setdefault(int(item["pid"]), _JsonProcess())
            process.name = _text(item["args"]["name"])
        elif item["name"] == "thread_name":
            self._line(item).name = _text(item["args"]["name"])

    def _add_event(self, item: dict[str, Any]) -> None:
        start_ps = _ps(item["ts"])
        duration_ps = _ps(item.get("dur", 0))
        if not 0 <= duration_ps < TIME_LIMIT_PS:
            raise ValueError("no event takes that long, or a negative time")
        args = item.get("args")
        if not isinstance(args, dict):
            args = {}
        # If the shown name is abbreviated, the full one is an argument.
        name = _short(args.get("long_name", item["name"]))
        if args.get("step_name") == name:  # the root of a step is shown with the step's number
            name = name.removesuffix(f" {args.get('group_id')}")
        stats = tuple(
            (_COLUMN[key], _plain(value)) for key, value in args.items() if key in _COLUMN
        )
        self.text += len(name) + sum(len(value) for _, value in stats if isinstance(value, str))
        self._line(item).events.append((start_ps, duration_ps, sys.intern(name), stats))

    def assemble(self, assembler: Assembler) -> None:
        """Times count from the earliest event: the format has no absolute clock."""
        self._leave_out_far_ones()
        base_ps = min((event[0] for line in self._lines() for event in line.events), default=0)
        for process in self.processes.values():
            self._assemble_process(assembler, process, base_ps)

    def _lines(self) -> Iterator[_JsonThread]:
        return (line for process in self.processes.values() for line in process.lines.values())

    def _leave_out_far_ones(self) -> None:
        """A profile takes minutes: a time that is days away from the others is damage."""
        starts = sorted(event[0] for line in self._lines() for event in line.events)
        near_ps = TIME_LIMIT_PS // 4
        if not starts or starts[-1] - starts[0] < near_ps:
            return
        middle_ps = starts[len(starts) // 2]
        for line in self._lines():
            near = [event for event in line.events if abs(event[0] - middle_ps) < near_ps]
            far = len(line.events) - len(near)
            self.good -= far
            self.bad += far
            line.events = near

    def _assemble_process(self, assembler: Assembler, process: _JsonProcess, base_ps: int) -> None:
        lines = [line for line in process.lines.items()
                 if not vocabulary.drop_line(process.name, line[1].name)]  # fmt: skip
        names = {event[2] for _, line in lines for event in line.events}
        slots = {name: slot for slot, name in enumerate(sorted(names))}
        tables = Tables.of(process.name, {slot: name for name, slot in slots.items()}, {})
        keep_from_ps = array("q", tables.keep_from_ps)
        rules = Rules(array("q", tables.join_gap_ps), array("I", tables.fold_bits))
        totals = Totals()
        texts: dict[bytes, int] = {}
        results = []
        for _, line in lines:
            events = []
            for start_ps, duration_ps, name, stats in line.events:
                slot = slots[name]
                pinned = any(STAT_NAMES[column] in PINNED_STATS for column, _ in stats)
                if keep_from_ps[slot] < 0 and not pinned:
                    continue
                kept = pinned or duration_ps >= keep_from_ps[slot]
                resolved = tuple(
                    (column, *_stat_value(value, texts)) for column, value in stats if kept
                )
                events.append(Event(start_ps - base_ps, duration_ps, slot, kept, resolved))
            write_line(events, rules, totals, assembler.columns)
            results.append(LineResult(len(assembler.columns), len(events), 0, 0, 0, 0))
        assembler.add_plane(
            Plane(process.name, {}),
            [(tid, line.name) for tid, line in lines],
            tables,
            PlaneResult(results, [], totals.to_bytes(len(slots)), list(texts)),
        )


def _ps(microseconds: object) -> int:
    if not isinstance(microseconds, int | float):
        raise TypeError("a time must be a number")
    return round(microseconds * PS_PER_US)


def _text(value: object) -> str:
    """JSON may contain half characters, with which no file could be written."""
    return str(value).encode("utf-8", "replace").decode()


def _short(value: object) -> str:
    return _text(value)[:TEXT_LIMIT]


def _plain(value: object) -> object:
    """A number or a text: lists and objects would take many times their size in the file."""
    return value if isinstance(value, int | float) else _short(value)


def _stat_value(value: object, texts: dict[bytes, int]) -> tuple[int, int]:
    """Kind and value. TensorFlow wrote every value as text: whole numbers become numbers again."""
    if isinstance(value, float):
        return KIND_DOUBLE, int(struct.unpack("<q", struct.pack("<d", value))[0])
    text = str(value)
    if _INTEGER.fullmatch(text) and -(1 << 63) <= int(text) < 1 << 64:
        return KIND_INT, wire.signed(int(text) & 0xFFFF_FFFF_FFFF_FFFF)
    return KIND_TEXT, texts.setdefault(text.encode("utf-8", "replace"), len(texts))
