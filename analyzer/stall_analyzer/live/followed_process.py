"""The records of one process that its current state needs, and no others.

Training may take weeks. Only the current epoch is kept, and the one before it, which tells how many
steps an epoch has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.attribute.wasted_steps import CAPTURED_LOSS
from stall_analyzer.captures.capture_format import Account, MarkName, Tag
from stall_analyzer.captures.capture_reader import capture_of
from stall_analyzer.captures.capture_records import BookItem, BooksRecord, CaptureRecord, MarkRecord
from stall_analyzer.captures.held_stacks import read_dump
from stall_analyzer.captures.look_records import DumpRecord, Look
from stall_analyzer.live.followed_file import FollowedFile, Scalar
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import NS_PER_S

KEPT_SCALARS = 5_000  # of each kind: more than an hour of host samples, one a second
KEPT_LOOKS = (
    200  # looks at a process in which nothing moves: three minutes or, as looks become rarer, more
)
# A capture writes each second; after this long, Python may not be running in it.
NO_WORD_NS = 5 * NS_PER_S
HOST = Tag.HOST.removeprefix(Tag.ALL)


@dataclass(frozen=True)
class Moment:
    """What the books say about the present."""

    last_step_ns: int = 0  # when it ended
    # What the training thread is doing. None while steps end: then it does a bit of everything.
    doing: BookItem | None = None
    # Since then, steps have ended or one is running, in a row that is not over. What they waited
    # for is not known until it is.
    undecided_ns: int | None = None


class FollowedProcess:
    def __init__(self) -> None:
        self._files: dict[str, FollowedFile] = {}
        self._forget()

    def _forget(self) -> None:
        self._once: list[CaptureRecord] = []  # start, model, notes, end …
        self._marks: list[MarkRecord] = []
        self._books: list[BooksRecord] = []
        self._open_before: BooksRecord | None = None  # the open row as it was last recorded
        self._last_step_ns = 0
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
        """As if the current epoch were the first."""
        looks = [*self._looks]
        if now_ns - self._last_ns > NO_WORD_NS:
            held = (read_dump(path) for path in self._files)
            looks += [dump for dump in held if dump is not None and dump.ns > self._last_ns]
        records = (*self._once, *self._marks, *self._books, *looks)
        series = {name: _series(scalars) for name, scalars in self._scalars.items()}
        return capture_of(records, series)[0]

    def moment(self) -> Moment:
        row = self._books[-1] if self._books else None
        if row is None or not row.is_open:
            return Moment(self._last_step_ns)
        if self._has_moved(row):
            return Moment(self._last_step_ns, undecided_ns=row.began_ns)
        item = row.items[-1] if row.items else self._growing(row)
        # In a row with steps, only what came after them belongs to the moment.
        after_ns = row.began_ns + sum(row.lasted_ns) - max(self._last_step_ns, row.began_ns)
        doing = item and replace(item, spent_ns=min(item.spent_ns, after_ns))
        is_in_step = doing is not None and doing.account == Account.STEP
        return Moment(self._last_step_ns, doing, row.began_ns if is_in_step else None)

    def _growing(self, row: BooksRecord) -> BookItem | None:
        """The account that grew the most since the row was last recorded."""
        told = self._open_before.spent_ns if self._open_before is not None else {}
        spent = {account: sum(column) for account, column in row.spent_ns.items()}
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
            self._take_books(record)
        elif isinstance(record, Look) and not isinstance(record, DumpRecord):
            self._looks.append(record)
        else:
            self._once.append(record)

    def _take_books(self, record: BooksRecord) -> None:
        was_open = self._books and self._books[-1].is_open
        before = self._books.pop() if was_open else None  # recorded again, or over
        is_same = before is not None and record.is_open and before.began_ns == record.began_ns
        self._open_before = before if is_same else None
        self._books.append(record)
        if record.is_open and self._has_moved(record):
            self._last_step_ns = record.began_ns + sum(record.lasted_ns)
        elif not record.is_open and any(record.steps):
            count = max(n for n, steps in enumerate(record.steps, 1) if steps)
            self._last_step_ns = record.began_ns + sum(record.lasted_ns[:count])

    def _has_moved(self, row: BooksRecord) -> bool:
        """Whether steps ended in an open row since it was last recorded."""
        before = self._open_before
        return sum(row.steps) > (sum(before.steps) if before is not None else 0)

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
        """Books of an epoch's end come after its mark, but describe the time before it."""
        self._books = [r for r in self._books if r.began_ns + sum(r.lasted_ns) > ns]


def _beginnings(marks: Iterable[MarkRecord]) -> list[MarkRecord]:
    return [mark for mark in marks if mark.what == MarkName.FIT_BEGIN]


def _series(scalars: Iterable[Scalar]) -> Series:
    _, steps, wall_ns, values = zip(*scalars, strict=True)
    return Series(
        np.array(steps, dtype=np.int64), np.array(wall_ns, dtype=np.int64), np.array(values, float)
    )
