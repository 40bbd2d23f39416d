"""The decoder's hot loop without a C compiler: same arguments, same results, about a hundred times
slower. _events.h and _lines.h are the same program; the tests compare the two."""

from __future__ import annotations

from array import array

from stall_analyzer.decode.event_columns import (
    EVENT_LIMIT,
    KIND_DOUBLE,
    KIND_INT,
    KIND_REF,
    KIND_TEXT,
    NO_COLUMN,
    TELL_EVERY,
    TEXT_LIMIT,
    TIME_LIMIT_PS,
    UNNAMED_KINDS,
    BytesRead,
    Columns,
    RawResult,
    RawTables,
    Rows,
    StatRows,
)
from stall_analyzer.decode.nest import Event, Rules, Totals, write_line
from stall_analyzer.decode.scan import ByteWindow
from stall_analyzer.errors import WireError
from stall_analyzer.files import wire

_NUMBER_KINDS = {3: KIND_INT, 4: KIND_INT, 7: KIND_REF}


def read_plane(
    fd: int,
    lines: bytes,
    tables: RawTables,
    columns: tuple[Rows, tuple[StatRows, ...]],
    unnamed_rows: int,
    progress: BytesRead,
    /,
) -> RawResult:
    """An event_columns.Core. Holds the events of one line in memory at a time."""
    plane = _PlaneDecoder(fd, tables, unnamed_rows, progress)
    rules = Rules(array("q", tables[2]), array("I", tables[3]))
    totals = Totals()
    out = Columns(*columns)
    results = []
    numbers = array("q", lines)
    for begin, end, shift_ps in zip(numbers[0::3], numbers[1::3], numbers[2::3], strict=True):
        events, good, bad, stopped_at, name = plane.line(begin, end, shift_ps)
        write_line(events, rules, totals, out)
        results.append((len(out), good, bad, stopped_at, *name))
    unnamed = list(plane.slots)[plane.known :]
    return results, unnamed, totals.to_bytes(len(plane.slots)), list(plane.texts)


class _BadEvent(Exception):
    """Not a WireError, which ends the line: this ends only the event."""


class _PlaneDecoder:
    def __init__(self, fd: int, tables: RawTables, unnamed_rows: int, progress: BytesRead) -> None:
        event_ids, keep_from_ps, _, _, stat_ids, stat_column, pinned, _ = tables
        self.window = ByteWindow(fd, 256 << 10)
        self.slots = {event_id: slot for slot, event_id in enumerate(array("q", event_ids))}
        self.known = len(self.slots)
        self.keep_from_ps = array("q", keep_from_ps)
        self.stat_numbers = {stat_id: i for i, stat_id in enumerate(array("q", stat_ids))}
        self.stat_column = stat_column
        self.pinned = pinned
        self.unnamed_rows_left = unnamed_rows
        self.texts: dict[bytes, int] = {}
        self.progress = progress
        self.tell_at = 0

    def line(
        self, begin: int, end: int, shift_ps: int
    ) -> tuple[list[Event], int, int, int, tuple[int, int]]:
        """The events that are not dropped, the number of good and bad ones, where it stopped, and
        the display name."""
        events: list[Event] = []
        good = bad = 0
        name = 0, 0
        position = begin
        try:
            for number, wire_type, start, stop in self.window.fields(begin, end):
                if position >= self.tell_at:
                    self.tell_at = position + TELL_EVERY
                    self.progress(position)
                if number == 11 and wire_type == wire.BYTES:
                    name = start, stop
                elif number == 4 and wire_type == wire.BYTES:
                    try:
                        event = self.event(start, stop, shift_ps)
                        good += 1
                    except _BadEvent:
                        event = None
                        bad += 1
                    if event:
                        events.append(event)
                position = stop
        except WireError:
            return events, good, bad, position, name
        return events, good, bad, end, name

    def event(self, begin: int, end: int, shift_ps: int) -> Event | None:
        """None if it is dropped. Raises WireError if the file ends early."""
        if end - begin > EVENT_LIMIT:
            raise _BadEvent
        at = self.window.find(begin, end - begin)
        try:
            return self.parse_event(at, at + end - begin, shift_ps)
        except WireError as error:
            raise _BadEvent from error

    def parse_event(  # noqa: C901, PLR0912  one branch for each field, as in _events.h
        self, begin: int, end: int, shift_ps: int
    ) -> Event | None:
        event_id = offset = duration = 0
        aggregated = is_pinned = False
        stats = []
        for number, wire_type, start, stop in wire.fields(self.window.data, begin, end):
            if wire_type == wire.VARINT:
                if number == 1:
                    event_id = wire.signed(start)
                elif number == 2:
                    offset, aggregated = wire.signed(start), False
                elif number == 3:
                    duration = wire.signed(start)
                elif number == 5:
                    aggregated = True  # replaces the offset
            elif number == 4 and wire_type == wire.BYTES:
                column, kind, value = self.stat(start, stop)
                if column != NO_COLUMN:
                    is_pinned = is_pinned or bool(self.pinned[column])
                    stats.append((column, kind, value))
        if aggregated:
            return None  # a sum over many events has no place in time
        in_reach = -TIME_LIMIT_PS < offset < TIME_LIMIT_PS and 0 <= duration < TIME_LIMIT_PS
        begin_ps = shift_ps + offset
        if not in_reach or begin_ps < 0 or begin_ps + duration >= TIME_LIMIT_PS:
            raise WireError("a time out of range")
        slot = self.slot(event_id)
        if is_pinned:
            kept = True
        elif slot < self.known:
            if self.keep_from_ps[slot] < 0:
                return None
            kept = duration >= self.keep_from_ps[slot]
        else:
            kept = self.unnamed_rows_left > 0
            self.unnamed_rows_left -= kept
        return Event(begin_ps, duration, slot, kept, self.resolved(stats) if kept else ())

    def slot(self, event_id: int) -> int:
        slot = self.slots.get(event_id)
        if slot is None:
            slot = min(len(self.slots), self.known + UNNAMED_KINDS - 1)
            if slot == len(self.slots):
                self.slots[event_id] = slot
        return slot

    def stat(self, begin: int, end: int) -> tuple[int, int | None, int | bytes]:
        """Column, kind and value; the kind is None if there is no value."""
        data = self.window.data
        stat_id = 0
        kind: int | None = None
        value: int | bytes = 0
        for number, wire_type, start, stop in wire.fields(data, begin, end):
            if wire_type == wire.VARINT:
                if number == 1:
                    stat_id = wire.signed(start)
                elif number in _NUMBER_KINDS:
                    kind, value = _NUMBER_KINDS[number], wire.signed(start)
            elif wire_type == wire.BYTES:
                if number in {5, 6}:
                    kind, value = KIND_TEXT, data[start : min(stop, start + TEXT_LIMIT)]
            elif wire_type == wire.FIXED64 and number == 2:
                kind, value = KIND_DOUBLE, int.from_bytes(data[start:stop], "little", signed=True)
        stat_number = self.stat_numbers.get(stat_id)
        column = NO_COLUMN if stat_number is None else self.stat_column[stat_number]
        return column, kind, value

    def resolved(
        self, stats: list[tuple[int, int | None, int | bytes]]
    ) -> tuple[tuple[int, int, int], ...]:
        """A text becomes its number, a reference the number of the stat that it names."""
        result = []
        for column, kind, value in stats:
            if isinstance(value, bytes):
                result.append((column, KIND_TEXT, self.texts.setdefault(value, len(self.texts))))
            elif kind == KIND_REF:
                if value in self.stat_numbers:
                    result.append((column, kind, self.stat_numbers[value]))
            elif kind is not None:
                result.append((column, kind, value))
        return tuple(result)
