"""Nest the events of a line and write them as rows: the Python twin of add_event in _lines.h.

Serves pure.py and trace_json.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from stall_analyzer.decode.event_columns import IDENTITY_COLUMN, KIND_INT, OVERHANG_PS, Columns


class Event(NamedTuple):
    start_ps: int
    duration_ps: int
    slot: int
    kept: bool
    stats: tuple[tuple[int, int, int], ...]  # column, kind, value; only for kept events


class Rules(NamedTuple):
    """By slot; slots beyond the end have no rules."""

    join_gap_ps: Sequence[int]
    fold_bits: Sequence[int]


class Totals:
    """count, total_ps and self_ps by slot."""

    def __init__(self) -> None:
        self._values: list[list[int]] = []

    def of(self, slot: int) -> list[int]:
        while slot >= len(self._values):
            self._values.append([0, 0, 0])
        return self._values[slot]

    def to_bytes(self, slots: int) -> bytes:
        if slots:
            self.of(slots - 1)
        # Damaged files may contain times that overflow: wrap around as the native decoder does.
        wrapped = ((value + (1 << 63)) % (1 << 64) - (1 << 63) for of_slot in self._values
                   for value in of_slot)  # fmt: skip
        return array("q", wrapped).tobytes()


def write_line(events: list[Event], rules: Rules, totals: Totals, columns: Columns) -> None:
    """Append the line's kept events."""
    events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    first_row = len(columns)
    rows: list[tuple[int, int, int, int]] = []
    identity: int | None = None  # of the last row
    folded: list[int] = []
    stats: list[tuple[int, int, int, int]] = []
    stack: list[tuple[int, int, int]] = []  # end, slot, row of the innermost kept event or -1
    for start, duration, slot, kept, event_stats in events:
        end = start + duration
        while stack and not (start < stack[-1][0] and end <= stack[-1][0] + OVERHANG_PS):
            stack.pop()
        own = totals.of(slot)
        row = -1
        if stack:
            parent_end, parent_slot, row = stack[-1]
            end = min(end, parent_end)
            totals.of(parent_slot)[2] -= end - start
        own[0] += 1
        own[1] += end - start
        own[2] += end - start
        known = slot < len(rules.fold_bits)
        bits = rules.fold_bits[slot] if known else 0
        if row >= 0:
            folded[row] |= bits
        parent = first_row + row if row >= 0 else -1
        own_identity = _identity(event_stats)
        gap = start - rows[-1][0] - rows[-1][1] if rows else 0
        same = rows and rows[-1][2:] == (slot, parent) and own_identity == identity is not None
        if kept and known and same and gap < rules.join_gap_ps[slot]:
            row = len(rows) - 1
            rows[row] = (rows[row][0], end - rows[row][0], slot, parent)
            folded[row] |= bits
        elif kept:
            rows.append((start, end - start, slot, parent))
            folded.append(bits)
            row = len(rows) - 1
            identity = own_identity
            stats.extend((column, first_row + row, value, kind)
                         for column, kind, value in event_stats)  # fmt: skip
        stack.append((end, slot, row))
    for i, type_code in enumerate("qqii"):
        columns.rows[i].extend(array(type_code, [row[i] for row in rows]).tobytes())
    columns.rows[4].extend(array("I", folded).tobytes())
    for stat_column, event_row, value, kind in stats:
        event_rows, values, kinds = columns.stats[stat_column]
        event_rows += event_row.to_bytes(4, "little")
        values += value.to_bytes(8, "little", signed=True)
        kinds.append(kind)


def _identity(stats: Sequence[tuple[int, int, int]]) -> int | None:
    """What events must have in common to share a row."""
    found = None
    for column, kind, value in stats:
        if column == IDENTITY_COLUMN:
            found = value if kind == KIND_INT else None
    return found
