"""The scalars of one event file, in the order written, while it is being read.

Protobuf parses the first record of each layout. Those that follow are taken by _scalars (native)
where pip could build it; otherwise, or with STALL_PURE_PYTHON=1, protobuf parses them all.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stall_analyzer.model.units import Float64s, Int64s

MOST_LAYOUTS = 10_000  # a file that never repeats one must not fill the memory with them
_ROW = struct.Struct("<qqdd")
_HISTOGRAM = struct.Struct("<qqqd")
_ROWS = np.dtype([("column", "<i8"), ("step", "<i8"), ("wall_s", "<f8"), ("value", "<f8")])
# Rows are divided by tag now and then: each time costs as much as some hundred of them.
_DIVIDE_BYTES = 4 << 20

try:
    from stall_analyzer.events import _scalars
except ImportError:  # no C compiler when this was installed
    HAS_NATIVE = False
else:
    HAS_NATIVE = True


class Histogram(NamedTuple):
    tag: str
    content: bytes  # doubles
    wall_s: float


class TagColumns(NamedTuple):
    """A tag in one file."""

    step: Int64s
    wall_s: Float64s
    value: Float64s


class EventScalars:
    def __init__(self, known: Mapping[str, TagColumns] | None = None) -> None:
        """`known`: what was read of the file before."""
        known = known or {}
        self._columns = {tag: column for column, tag in enumerate(known)}
        self._parts = [[columns] for columns in known.values()]
        self._layouts: dict[bytes, tuple[int, ...] | int] = {}
        self._histograms: list[str] = []  # tags
        self._rows = bytearray()
        self._is_native = HAS_NATIVE and os.environ.get("STALL_PURE_PYTHON") != "1"

    def take_known(self, chunk: bytes, at: int) -> tuple[int, int, list[Histogram]]:
        """Take the records of a chunk from `at` on whose layout is known. Returns the place of the
        first other one, how many were taken, and the histograms among them."""
        if not self._layouts:
            return at, 0, []
        at, records, rows, found = _scalars.take_known(chunk, at, self._layouts)
        self._add(rows)
        histograms = [
            Histogram(self._histograms[number], chunk[begin : begin + size], wall_s)
            for number, begin, size, wall_s in _HISTOGRAM.iter_unpack(found)
        ]
        return at, records, histograms

    def take(
        self, values: Sequence[tuple[str, float]], step: int, wall_s: float, data: bytes | None
    ) -> None:
        """The scalars of one record. `data` is the record, where it holds nothing else."""
        columns = [self._columns.setdefault(tag, len(self._columns)) for tag, _ in values]
        for column, (_, value) in zip(columns, values, strict=True):
            self._add(_ROW.pack(column, step, wall_s, value))
        if data is not None:
            self._learn(data, tuple(columns))

    def learn_histogram(self, tag: str, data: bytes) -> None:
        """A record that holds a histogram and nothing else."""
        if self._learn(data, len(self._histograms)):
            self._histograms.append(tag)

    def _learn(self, data: bytes, columns: tuple[int, ...] | int) -> bool:
        if not self._is_native or len(self._layouts) >= MOST_LAYOUTS:
            return False
        layout = _scalars.layout_of(data)
        if layout is not None:
            self._layouts[layout] = columns
        return layout is not None

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
        rows = np.frombuffer(bytes(self._rows), _ROWS)
        self._rows.clear()
        self._parts += [[] for _ in range(len(self._columns) - len(self._parts))]
        order = np.argsort(rows["column"], kind="stable")
        columns, begins = np.unique(rows["column"][order], return_index=True)
        for column, at in zip(columns.tolist(), np.split(order, begins[1:]), strict=False):
            part = TagColumns(rows["step"][at], rows["wall_s"][at], rows["value"][at])
            self._parts[column].append(part)
