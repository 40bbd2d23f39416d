"""Read the lines of a plane on all cores: the native decoder does not hold the interpreter's lock.

Each thread reads some lines into its own columns. Put together in the order of the file, they are
what one thread would have read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stall_analyzer.decode.event_columns import (
    KIND_TEXT,
    BytesRead,
    Columns,
    Core,
    LineResult,
    PlaneResult,
    Tables,
    int64s,
)
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Int64s

if TYPE_CHECKING:
    from concurrent.futures import Future

# Below this, threads cost more than they save.
PIECE_BYTES = 8 << 20
# With pread, threads share a file without moving each other's position.
THREADS = (os.cpu_count() or 1) if hasattr(os, "pread") else 1

# Begin and end in the file, and what to add to the times of its events.
LineBytes: TypeAlias = tuple[int, int, int]


class _Stopped(Exception):
    """The caller no longer wants the lines."""


@dataclass(frozen=True)
class PlaneReader:
    """A core, ready to read the planes of one file into `columns`."""

    core: Core
    fd: int
    columns: Columns
    progress: BytesRead

    def read(self, lines: Sequence[LineBytes], tables: Tables, unnamed_rows: int) -> PlaneResult:
        """Append the events of a plane's lines."""
        pieces = _pieces(lines) if THREADS > 1 else [lines]
        if len(pieces) > 1:
            result = self._read_at_once(pieces, tables)
            if result is not None:
                return result
        return self._read(lines, tables, self.columns, unnamed_rows, self.progress)

    def _read(
        self,
        lines: Sequence[LineBytes],
        tables: Tables,
        columns: Columns,
        unnamed_rows: int,
        progress: BytesRead,
    ) -> PlaneResult:
        numbers = int64s(number for line in lines for number in line)
        found, unnamed, totals, texts = self.core(
            self.fd, numbers, tables.raw, (columns.rows, columns.stats), unnamed_rows, progress
        )
        return PlaneResult([LineResult(*line) for line in found], unnamed, totals, texts)

    def _read_at_once(
        self, pieces: Sequence[Sequence[LineBytes]], tables: Tables
    ) -> PlaneResult | None:
        """None if events have no names: how many of those get rows depends on the lines before
        them. Only damaged files have such events."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  small files need none

        heard = _Heard(self.progress, pieces[0][0][0])

        def read(piece: Sequence[LineBytes]) -> tuple[Columns, PlaneResult]:
            columns = Columns()
            return columns, self._read(piece, tables, columns, 0, heard.of_piece(piece[0][0]))

        with ThreadPoolExecutor(THREADS) as pool:
            reading: dict[int, Future[tuple[Columns, PlaneResult]]] = {}
            for i in sorted(range(len(pieces)), key=lambda i: -_size(pieces[i])):
                # The largest first, so that all end together.
                reading[i] = pool.submit(read, pieces[i])
            try:
                parts = [reading.pop(i).result() for i in range(len(pieces))]
            finally:
                heard.is_stopped = bool(reading)
        if any(result.unnamed for _, result in parts):
            return None
        return _joined(parts, self.columns)


class _Heard:
    """Adds up how much each thread has read."""

    def __init__(self, progress: BytesRead, begin: int) -> None:
        self._progress = progress
        self._read = begin
        self._lock = Lock()
        self.is_stopped = False

    def of_piece(self, begin: int) -> BytesRead:
        before = begin

        def read(position: int) -> None:
            nonlocal before
            if self.is_stopped:
                raise _Stopped
            with self._lock:
                self._read += position - before
                before = position
                self._progress(self._read)

        return read


def _size(lines: Sequence[LineBytes]) -> int:
    return sum(end - begin for begin, end, _ in lines)


def _pieces(lines: Sequence[LineBytes]) -> list[list[LineBytes]]:
    """Consecutive lines, in pieces that are large enough for a thread."""
    pieces: list[list[LineBytes]] = [[]]
    for line in lines:
        if _size(pieces[-1]) >= PIECE_BYTES:
            pieces.append([])
        pieces[-1].append(line)
    if len(pieces) > 1 and _size(pieces[-1]) < PIECE_BYTES:
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    return pieces


def _joined(parts: list[tuple[Columns, PlaneResult]], into: Columns) -> PlaneResult:
    lines: list[LineResult] = []
    numbers: dict[bytes, int] = {}  # number of each text
    totals = np.zeros(len(parts[0][1].totals) // 8, np.int64)
    while parts:
        columns, result = parts.pop(0)  # each is released as soon as it is copied
        first_row = len(into)
        lines += [line._replace(last_row=line.last_row + first_row) for line in result.lines]
        totals += np.frombuffer(result.totals, np.int64)
        texts = [numbers.setdefault(text, len(numbers)) for text in result.texts]
        _append(columns, into, first_row, np.array(texts, np.int64))
    return PlaneResult(lines, [], totals.tobytes(), list(numbers))


def _append(part: Columns, into: Columns, first_row: int, texts: Int64s) -> None:
    parent = np.frombuffer(part.rows[3], np.int32)
    parent[parent >= 0] += first_row
    for column, more in zip(into.rows, part.rows, strict=True):
        column.extend(more)
    for stat, stat_part in zip(into.stats, part.stats, strict=True):
        event, value, kind = stat_part
        np.frombuffer(event, np.int32)[:] += first_row
        values = np.frombuffer(value, np.int64)
        are_texts = np.frombuffer(kind, np.uint8) == KIND_TEXT
        values[are_texts] = texts[values[are_texts]]
        for column, more in zip(stat, stat_part, strict=True):
            column.extend(more)
