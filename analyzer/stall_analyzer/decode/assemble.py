"""Put the planes of a file together into one Trace: names, texts and totals across planes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.decode.event_columns import (
    KIND_DOUBLE,
    KIND_INT,
    KIND_REF,
    KIND_TEXT,
    STAT_NAMES,
    UNNAMED_KINDS,
    Columns,
    PlaneResult,
    StatRows,
    Tables,
)
from stall_analyzer.decode.framework import framework_of
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Events, Line, NameTotals, Plane, StatColumn, Trace
from stall_analyzer.model.units import Int64s

KIND_NAMES = {KIND_INT: "int", KIND_DOUBLE: "double", KIND_TEXT: "text"}


@dataclass(frozen=True)
class Clock:
    """Unix times of the trace's zero and of the end of profiling, if the file has them."""

    base_unix_ns: int | None = None
    stop_unix_ns: int | None = None


class Assembler:
    def __init__(self) -> None:
        self.columns = Columns()
        self._planes: list[Plane] = []
        self._lines: list[Line] = []
        self._names: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._totals: list[tuple[list[int], Int64s]] = []
        self._resolved_stats = [0] * len(STAT_NAMES)

    def add_plane(
        self, plane: Plane, lines: Sequence[tuple[int, str]], tables: Tables, result: PlaneResult
    ) -> None:
        """`lines` has the ids and names of the lines in `result`, whose rows are in the columns."""
        first_row = row = self._lines[-1].last_event if self._lines else 0
        for (line_id, name), line in zip(lines, result.lines, strict=True):
            self._lines.append(Line(len(self._planes), line_id, name, row, line.last_row))
            row = line.last_row
        self._planes.append(plane)
        self._number_names(tables, result, first_row, row)
        used_texts = [text.decode("utf-8", "replace") for text in result.texts]
        for text in sorted(used_texts):  # the two decoders may find them in different orders
            self._strings.setdefault(text, len(self._strings))
        texts = np.array([self._strings[text] for text in used_texts], np.int64)
        for i, stat in enumerate(self.columns.stats):
            resolved, self._resolved_stats[i] = self._resolved_stats[i], len(stat[2])
            if resolved < len(stat[2]):
                self._number_texts(stat, resolved, texts, tables.stat_names)

    def _number_names(self, tables: Tables, result: PlaneResult, first: int, last: int) -> None:
        """Slots of the plane become indices into Trace.names."""
        names = (*tables.names, *(f"event {number}" for number in result.unnamed))
        if len(result.unnamed) == UNNAMED_KINDS:
            names = (*names[:-1], "event (others)")
        totals = np.frombuffer(result.totals, np.int64).reshape(-1, 3)
        used = np.flatnonzero(totals[:, 0])
        numbers = [self._names.setdefault(names[slot], len(self._names)) for slot in used]
        self._totals.append((numbers, totals[used]))
        number_of_slot = np.zeros(len(totals), np.int32)
        number_of_slot[used] = numbers
        slots = np.frombuffer(self.columns.rows[2], np.int32)[first:last]
        if len(slots):
            np.take(number_of_slot, slots, out=slots, mode="clip")  # "raise" would need a copy

    def _number_texts(
        self, stat: StatRows, first: int, texts: Int64s, stat_names: Sequence[str]
    ) -> None:
        """Texts and references to texts become indices into Trace.strings."""
        has_texts = stat[2].find(KIND_TEXT, first) >= 0
        has_references = stat[2].find(KIND_REF, first) >= 0
        if not has_texts and not has_references:
            return
        values = np.frombuffer(stat[1], np.int64)[first:]
        kinds = np.frombuffer(stat[2], np.uint8)[first:]
        is_reference = kinds == KIND_REF
        if has_texts:
            is_text = kinds == KIND_TEXT
            values[is_text] = texts[values[is_text]]
        if has_references:
            references = values[is_reference]
            number_of_stat = np.zeros(len(stat_names), np.int64)
            seen = np.zeros(len(stat_names), np.bool_)
            seen[references] = True
            for i in np.flatnonzero(seen).tolist():
                number_of_stat[i] = self._strings.setdefault(stat_names[i], len(self._strings))
            values[is_reference] = number_of_stat[references]
            kinds[is_reference] = KIND_TEXT

    def trace(
        self, host_file: HostFile, clock: Clock, errors: Sequence[str], notes: Sequence[Note]
    ) -> Trace:
        stats = {
            name: self._stat_column(stat)
            for name, stat in zip(STAT_NAMES, self.columns.stats, strict=True)
            if len(stat[2])
        }
        start, duration, name, parent, folded = self.columns.rows
        return Trace(
            host=host_file.host,
            path=host_file.path,
            planes=tuple(self._planes),
            lines=tuple(self._lines),
            names=tuple(self._names),
            strings=tuple(self._strings),
            events=Events(
                start_ps=np.frombuffer(start, np.int64),
                duration_ps=np.frombuffer(duration, np.int64),
                line=np.repeat(
                    np.arange(len(self._lines), dtype=np.int32),
                    [line.last_event - line.first_event for line in self._lines],
                ),
                name=np.frombuffer(name, np.int32),
                parent=np.frombuffer(parent, np.int32),
                folded=np.frombuffer(folded, np.uint32),
            ),
            stats=stats,
            totals=self._name_totals(),
            base_unix_ns=clock.base_unix_ns,
            stop_unix_ns=clock.stop_unix_ns,
            errors=tuple(errors),
            notes=tuple(notes),
            framework=framework_of(self._names, stats),
        )

    def _name_totals(self) -> NameTotals:
        totals = np.zeros((len(self._names), 3), np.int64)
        for numbers, of_plane in self._totals:
            np.add.at(totals, numbers, of_plane)
        return NameTotals(totals[:, 0].copy(), totals[:, 1].copy(), totals[:, 2].copy())

    def _stat_column(self, stat: StatRows) -> StatColumn:
        """One kind for the whole column: if several are mixed, all become text."""
        events = np.frombuffer(stat[0], np.int32)
        values = np.frombuffer(stat[1], np.int64)
        kinds = np.frombuffer(stat[2], np.uint8)
        repeated = events[:-1] == events[1:]
        if repeated.any():  # a stat twice on one event: the last one counts, as in protobuf
            last = np.append(~repeated, True)
            events, values, kinds = events[last], values[last], kinds[last]
        if (kinds == kinds[0]).all():
            return StatColumn(events, values, KIND_NAMES[int(kinds[0])])
        doubles = values.view(np.float64)
        for i in np.flatnonzero(kinds != KIND_TEXT).tolist():
            text = str(values[i] if kinds[i] == KIND_INT else doubles[i])
            values[i] = self._strings.setdefault(text, len(self._strings))
        return StatColumn(events, values, KIND_NAMES[KIND_TEXT])
