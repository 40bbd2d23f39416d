"""The records of one process that its present state needs, and no others.

A training may run for weeks. What is kept of it is the epoch under way and the one before it, by
which the steps of an epoch are known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.attribute.wasted_steps import CAPTURED_LOSS
from stall_analyzer.captures.capture_format import MarkName, Tag
from stall_analyzer.captures.capture_reader import capture_of
from stall_analyzer.captures.capture_records import (
    BookItem,
    BooksRecord,
    CaptureRecord,
    DumpRecord,
    Look,
    MarkRecord,
)
from stall_analyzer.captures.held_stacks import read_dump
from stall_analyzer.live.followed_file import FollowedFile, Scalar
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.units import NS_PER_S

KEPT_SCALARS = 5_000  # of each kind: more than an hour of the host's, one a second
KEPT_LOOKS = (
    200  # at a process in which nothing moves: three minutes and, as they become rarer, more
)
NO_WORD_NS = 5 * NS_PER_S  # a capture writes each second: after more, no Python may run in it
HOST = Tag.HOST.removeprefix(Tag.ALL)


class FollowedProcess:
    def __init__(self) -> None:
        self._files: dict[str, FollowedFile] = {}
        self._forget()

    def _forget(self) -> None:
        self._once: list[CaptureRecord] = []  # start, model, notes, end …
        self._marks: list[MarkRecord] = []
        self._books: list[BooksRecord] = []
        self._open_before: BooksRecord | None = None  # the open row as it was told before
        self._looks: deque[Look] = deque(maxlen=KEPT_LOOKS)
        self._scalars: dict[str, deque[Scalar]] = {}
        self._last_ns = 0

    def follow(self, path: str) -> None:
        self._files.setdefault(path, FollowedFile(path))

    def read_new(self) -> None:
        for file in self._files.values():
            found, anew = file.read_new()
            if anew and len(self._files) == 1:
                self._forget()
            for each in found:
                self._take(each)

    def capture(self, now_ns: int) -> Capture:
        """As if the epoch under way were the first."""
        looks = [*self._looks]
        if now_ns - self._last_ns > NO_WORD_NS:
            held = (read_dump(path) for path in self._files)
            looks += [dump for dump in held if dump is not None and dump.ns > self._last_ns]
        records = (*self._once, *self._marks, *self._books, *looks)
        series = {name: _series(scalars) for name, scalars in self._scalars.items()}
        return capture_of(records, series)[0]

    def doing(self) -> BookItem | None:
        """What the training thread was last seen in. None while rows of its books are finished
        each second: then it does a bit of everything."""
        row, before = self._books[-1] if self._books else None, self._open_before
        if row is None or not row.is_open:
            return None
        if row.items:
            return row.items[-1]
        spent = {account: column[-1] for account, column in row.spent_ns.items() if column}
        is_same = before is not None and before.began_ns == row.began_ns
        told = before.spent_ns if before is not None and is_same else {}
        account = max(spent, key=lambda name: spent[name] - sum(told.get(name, ())), default="")
        return BookItem(account, count=1, spent_ns=spent[account]) if account else None

    def _take(self, new: CaptureRecord | Scalar) -> None:
        if isinstance(new, tuple):
            name, _, ns, _ = new
            if name in {STEP_SECONDS, CAPTURED_LOSS} or name.startswith(HOST):
                self._scalars.setdefault(name, deque(maxlen=KEPT_SCALARS)).append(new)
        else:
            ns = new.ns
            self._take_record(new)
        self._last_ns = max(self._last_ns, ns)

    def _take_record(self, record: CaptureRecord) -> None:
        if isinstance(record, MarkRecord):
            self._take_mark(record)
        elif isinstance(record, BooksRecord):
            was_open = self._books and self._books[-1].is_open
            self._open_before = self._books.pop() if was_open else None  # told again, or over
            self._books.append(record)
        elif isinstance(record, Look) and not isinstance(record, DumpRecord):
            self._looks.append(record)
        else:
            self._once.append(record)

    def _take_mark(self, mark: MarkRecord) -> None:
        self._marks.append(mark)
        begins = [m for m in self._marks if m.what == MarkName.EPOCH_BEGIN]
        if mark.what == MarkName.FIT_BEGIN:
            self._marks = [mark]
            self._keep_books_since(mark.ns)
        elif mark.what == MarkName.EPOCH_BEGIN and len(begins) > 2:
            fit, since = self._marks[:1], self._marks.index(begins[-2])
            self._marks = [*_beginnings(fit), *self._marks[since:]]
            self._keep_books_since(begins[-2].ns)

    def _keep_books_since(self, ns: int) -> None:
        """Those of an end come after its mark, but tell what was before it."""
        self._books = [r for r in self._books if r.began_ns + sum(r.lasted_ns) > ns]


def _beginnings(marks: Iterable[MarkRecord]) -> list[MarkRecord]:
    return [mark for mark in marks if mark.what == MarkName.FIT_BEGIN]


def _series(scalars: Iterable[Scalar]) -> Series:
    _, steps, wall_ns, values = zip(*scalars, strict=True)
    return Series(
        np.array(steps, dtype=np.int64), np.array(wall_ns, dtype=np.int64), np.array(values, float)
    )
