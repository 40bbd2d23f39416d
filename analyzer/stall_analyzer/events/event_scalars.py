"""The scalars of one event file, in the order written, while it is being read.

Protobuf parses the first record of each layout. Those that follow are read by _scalars (native) if
pip could build it; otherwise, or with STALL_PURE_PYTHON=1, protobuf parses them all.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stall_analyzer.model.event_log import HistogramSums
from stall_analyzer.model.units import Float64s, Int64s

INTERFACE = 2  # the same number is in _scalars.c
MOST_LAYOUTS = 10_000  # a file that never repeats a layout must not fill the memory
_ROW = struct.Struct("<qqdd")
_HISTOGRAMS = struct.Struct("<6q")
_ROWS = np.dtype([("column", "<i8"), ("step", "<i8"), ("wall_s", "<f8"), ("value", "<f8")])
# Rows are divided by tag now and then: each time costs as much as a few hundred rows.
_DIVIDE_BYTES = 4 << 20

try:
    from stall_analyzer.events import _scalars
except ImportError:  # no C compiler when this was installed
    HAS_NATIVE = False
else:
    HAS_NATIVE = getattr(_scalars, "INTERFACE", 1) == INTERFACE  # otherwise it is an older build


class Histograms(NamedTuple):
    """The histograms of one tag."""

    tag: str
    sums: HistogramSums
    last: bytes  # the content of the last one


class Known(NamedTuple):
    """What was read from a chunk."""

    end: int  # where the first other record is
    records: int
    histograms: Sequence[Histograms] = ()
    walls_s: tuple[float, float] | None = None  # of the first and the last histogram


class TagColumns(NamedTuple):
    """A tag in one file."""

    step: Int64s
    wall_s: Float64s
    value: Float64s


class EventScalars:
    def __init__(self, known: Mapping[str, TagColumns] | None = None, layouts: Any = None) -> None:
        """`known`: what was read from the file before; `layouts`: what `plain_layouts` returned."""
        known = known or {}
        self._columns = {tag: column for column, tag in enumerate(known)}
        self._parts = [[columns] for columns in known.values()]
        self._layouts: dict[bytes, tuple[int, ...] | int] = {}
        self._histograms: dict[str, int] = {}  # tags and their numbers
        self._rows = bytearray()
        self._is_native = HAS_NATIVE and os.environ.get("STALL_PURE_PYTHON") != "1"
        if layouts and self._is_native:
            tags, learned = layouts
            self._histograms = {tag: number for number, tag in enumerate(tags)}
            self._layouts = {
                bytes.fromhex(layout): tuple(columns) if isinstance(columns, list) else columns
                for layout, columns in learned
            }

    def plain_layouts(self) -> list[list[Any]]:
        """The known layouts, for JSON, with the tags of histograms in order of their numbers."""
        learned = [[layout.hex(), columns] for layout, columns in self._layouts.items()]
        return [list(self._histograms), learned]

    def take_known(self, chunk: bytes, at: int) -> Known:
        """Take the records of a chunk, from `at` on, whose layouts are known."""
        if not self._layouts:
            return Known(at, 0)
        at, records, rows, found, first_s, last_s = _scalars.take_known(chunk, at, self._layouts)
        self._add(rows)
        if not last_s:
            return Known(at, records)
        tags = list(self._histograms)
        histograms = [
            Histograms(tags[number], HistogramSums(*sums), chunk[begin : begin + size])
            for number, *sums, begin, size in _HISTOGRAMS.iter_unpack(found)
        ]
        return Known(at, records, histograms, (first_s, last_s))

    def take(
        self, values: Sequence[tuple[str, float]], step: int, wall_s: float, data: bytes | None
    ) -> None:
        """The scalars of one record. `data` is the record, if it contains nothing else."""
        columns = [self._columns.setdefault(tag, len(self._columns)) for tag, _ in values]
        for column, (_, value) in zip(columns, values, strict=True):
            self._add(_ROW.pack(column, step, wall_s, value))
        if data is not None:
            self._learn(data, tuple(columns))

    def learn_histogram(self, tag: str, data: bytes) -> None:
        """A record that contains a histogram and nothing else."""
        self._learn(data, self._histograms.setdefault(tag, len(self._histograms)))

    def _learn(self, data: bytes, columns: tuple[int, ...] | int) -> None:
        if not self._is_native or len(self._layouts) >= MOST_LAYOUTS:
            return
        layout = _scalars.layout_of(data)
        if layout is not None:
            self._layouts[layout] = columns

    def by_tag(self) -> dict[str, TagColumns]:
        self._divide()
        for parts in self._parts:
            if len(parts) > 1:
                parts[:] = [TagColumns(*map(np.concatenate, zip(*parts, strict=True)))]
        return {tag: self._parts[column][0] for tag, column in self._columns.items()}

    def _add(self, rows: bytes) -> None:
        self._rows += rows
        if len(self._rows) > _DIVIDE_BYTES:
            self._divide()

    def _divide(self) -> None:
        if not self._rows:
            return
        rows = np.frombuffer(bytes(self._rows), _ROWS)
        self._rows.clear()
        self._parts += [[] for _ in range(len(self._columns) - len(self._parts))]
        order = np.argsort(rows["column"], kind="stable")
        columns, begins = np.unique(rows["column"][order], return_index=True)
        for column, at in zip(columns.tolist(), np.split(order, begins[1:]), strict=False):
            part = TagColumns(rows["step"][at], rows["wall_s"][at], rows["value"][at])
            self._parts[column].append(part)
