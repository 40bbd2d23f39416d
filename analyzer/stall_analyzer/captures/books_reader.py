"""From records to books: rows in order, each only once, and each adding up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stall_analyzer.captures.capture_records import BooksRecord
from stall_analyzer.model.books import Books, DatedItem
from stall_analyzer.model.records import dataclass

MOST_NS = 1 << 62  # no clock shows a later time


@dataclass(frozen=True)
class _Row:
    begin_ns: int
    end_ns: int
    phase: str
    epoch: int
    steps: int
    calls: int
    spent_ns: dict[str, int]


def read_books(records: Sequence[BooksRecord]) -> tuple[Books | None, int]:
    """The books, or None if there are none, and how many rows were left out because they do not add
    up."""
    usable = [record for record in records if _has_a_shape(record)]
    bad = len(records) - len(usable)
    rows: list[_Row] = []
    for record in sorted(usable, key=lambda record: (record.began_ns, not record.is_open)):
        for row in _rows(record):
            if sum(row.spent_ns.values()) != row.end_ns - row.begin_ns:
                bad += 1
                continue
            while rows and rows[-1].end_ns > row.begin_ns:  # it was not over when it was recorded
                rows.pop()
            rows.append(row)
    return (_books(rows, usable) if rows else None), bad


def _has_a_shape(record: BooksRecord) -> bool:
    rows = len(record.lasted_ns)
    columns = [record.steps, record.calls, *record.spent_ns.values(), record.lasted_ns]
    is_even = rows > 0 and all(len(column) == rows for column in columns)
    numbers = [record.began_ns, record.epoch or 0, *(n for column in columns for n in column)]
    return is_even and all(0 <= number < MOST_NS for number in numbers)


def _rows(record: BooksRecord) -> Iterator[_Row]:
    begin_ns = record.began_ns
    for n, lasted_ns in enumerate(record.lasted_ns):
        spent = {account: column[n] for account, column in record.spent_ns.items() if column[n]}
        row = record.phase, record.epoch or 0, record.steps[n], record.calls[n], spent
        yield _Row(begin_ns, begin_ns + lasted_ns, *row)
        begin_ns += lasted_ns


def _books(rows: Sequence[_Row], records: Sequence[BooksRecord]) -> Books:
    accounts = dict.fromkeys(account for row in rows for account in row.spent_ns)
    return Books(
        begin_ns=np.array([row.begin_ns for row in rows], dtype=np.int64),
        end_ns=np.array([row.end_ns for row in rows], dtype=np.int64),
        phase=tuple(row.phase for row in rows),
        epoch=np.array([row.epoch for row in rows], dtype=np.int64),
        steps=np.array([row.steps for row in rows], dtype=np.int64),
        calls=np.array([row.calls for row in rows], dtype=np.int64),
        spent_ns={
            account: np.array([row.spent_ns.get(account, 0) for row in rows], dtype=np.int64)
            for account in accounts
        },
        items=tuple(_items(records, rows[-1].end_ns)),
    )


def _items(records: Sequence[BooksRecord], end_ns: int) -> Iterator[DatedItem]:
    for record in records:
        until_ns = record.began_ns + sum(record.lasted_ns)
        # Otherwise it was recorded again when it was over.
        if not record.is_open or until_ns >= end_ns:
            for item in record.items:
                yield DatedItem(record.began_ns, until_ns, record.phase, item)
