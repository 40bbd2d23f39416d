"""The books: how the training thread spends its time, measured by clocks, not by the profiler.

At any instant, one entry is on top, and the time belongs to it. So the entries of a row always add
up to the length of the row. A row is one step, or several short ones.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from stall_analyzer.captures.capture_format import Account, BookPhase
from stall_analyzer.captures.capture_records import BookItem, BooksRecord
from tb_stall_plugin.capture.training.around import Instead
from tb_stall_plugin.capture.training.time_sheet import BasicEntry, BasicSheet

# An account takes time only from accounts of a lower rank. The caller decides: what a callback
# calls is the callback's time. But building a graph or saving a model counts as such, whoever calls
# it.
RANKS = {
    Account.PYTHON: 0,
    Account.STEP: 1,
    Account.INPUT: 1,
    Account.ITERATOR: 1,
    Account.TEARDOWN: 1,
    Account.COLLECTIVE: 1,
    Account.REMOTE: 1,
    Account.REMOTE_STEP: 1,
    Account.REMOTE_WAIT: 1,
    Account.CALLBACK: 1,
    Account.LOGGING: 1,
    Account.SIDE: 1,
    Account.SAVE: 2,
    Account.TRACE: 3,
    Account.RETRACE: 3,
    Account.CAPTURE: 4,
}
MOST_ENTRIES = 500  # names that are new in each step must not fill the memory
OTHERS = "others"
FIRST_STEPS = 32  # these have a row each
LEAST_ROW_NS = 50_000_000  # later rows are at least this long (ending one takes 0.1 to 0.3 ms)
# A row also lasts at least one part in this many of the time so far, so that the number of rows
# grows with the logarithm of the time.
ROWS_FOR_ALL = 1000
LEAST_LATER_ROW_NS = 1_000_000_000  # after the first epoch
ITEMS_EACH_NS = 1_000_000_000  # items are written this often, and when a phase ends


class Entry(BasicEntry):
    """The time spent under one name; `row_ns` is that in the current row."""

    __slots__ = ("account", "name", "spent_ns", "told", "where", "why")

    def __init__(self, account: str, name: str = "", where: str = "") -> None:
        super().__init__(RANKS[account])
        self.account, self.name, self.where = account, name, where
        self.why = ""  # why a function was traced again
        self.spent_ns = 0  # in earlier rows
        self.told = (0, 0)  # the count and time that have been written


class Row:
    """A stretch of time that is over."""

    __slots__ = ("began_ns", "calls", "epoch", "items", "lasted_ns", "phase", "spent_ns", "steps")

    def __init__(self, began_ns: int, phase: str, epoch: int | None) -> None:
        self.began_ns, self.phase, self.epoch = began_ns, phase, epoch
        self.lasted_ns = self.steps = self.calls = 0
        self.spent_ns: dict[str, int] = {}
        self.items: tuple[BookItem, ...] = ()  # since they were last written


class Books(BasicSheet):
    """Kept by the training thread, and written by another thread. Nothing here takes a lock.

    `thread` is the one whose time it is; 0 if nobody's."""

    top: Entry
    below: list[Entry]

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._python = Entry(Account.PYTHON)
        super().__init__(clock_ns, self._python)
        self._entries = {(Account.PYTHON, "", ""): self._python}
        self._steps_by_name: dict[str, Entry] = {}  # the same ones, found faster
        self.own = self.entry(Account.CAPTURE)
        self._rows: deque[Row] = deque()
        self.first_epoch: list[Row] | None = None  # its rows, if somebody wants them in the end
        self.is_loop = False  # a custom loop, and not Keras's fit
        self._row_began_ns = self._began_ns = 0
        self._unix_ns = 0  # the Unix time when the clock was at 0
        self._phase, self._epoch = BookPhase.START, -1
        self._steps = self.calls = self._calls_before = 0
        self._steps_ever = self._steps_before_fit = 0
        self._traced_at: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._row_due_ns = self._items_due_ns = 0
        self._collecting_since_ns = 0
        self._collected: dict[Entry, int] = {}
        # Calls wait for other workers: rows end with a call, and so at the same time on all
        # workers.
        self.meets_others = False
        self._at_call_end: tuple[int, dict[Entry, int]] | None = None  # of this row's last call
        # For calls whose entry is entered before them.
        self.until_it_ends = Instead(after=self.leave)
        self._until_last_call_ends = Instead(after=self._last_call_ended)
        # The seconds that graphs measured inside steps since the last call, by account.
        self.in_steps: Callable[[], dict[str, float]] = dict
        # How many steps have ended that `steps_ended` has not been told of.
        self.untold_steps: Callable[[], int] = int

    # ------------------------------------------------------------ what happens

    def begin(self) -> None:
        self.thread = threading.get_ident()
        self.top = self._python
        self.below.clear()
        now_ns = self.clock_ns()
        self.since_ns = self._row_began_ns = self._began_ns = now_ns
        self._unix_ns = time.time_ns() - now_ns
        self._phase, self._epoch, self._steps = BookPhase.START, -1, 0
        self._steps_before_fit = self._steps_ever
        self._at_call_end = None
        gc.callbacks.append(self._collecting)

    def end(self) -> None:
        self._items_due_ns = 0
        self.close_row()
        self.thread = 0
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)

    @property
    def is_mine(self) -> bool:
        return threading.get_ident() == self.thread

    def entry(self, account: str, name: str = "", where: str = "") -> Entry:
        key = account, name, where
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MOST_ENTRIES:
                name, where = OTHERS, ""
            entry = self._entries.setdefault((account, name, where), Entry(account, name, where))
        return entry

    def tracing(self, function: Any, name: str, where: str) -> Entry:
        """A function counts as traced again if it was traced for an earlier step."""
        steps = self._steps_ever + self.untold_steps()
        is_again = self._traced_at.setdefault(function, steps) < steps
        return self.entry(Account.RETRACE if is_again else Account.TRACE, name, where)

    def is_below(self, *accounts: str) -> bool:
        """Whether one of these accounts has called what happens now."""
        return any(entry.account in accounts for entry in (self.top, *self.below))

    def call_begins(self, name: str) -> Instead:
        """A compiled function is called. Returns what to do when the call ends."""
        entry = self._steps_by_name.get(name)
        if entry is None:
            entry = self.entry(Account.STEP, name)
            if entry.name != OTHERS:
                self._steps_by_name[name] = entry
        self.calls += 1
        self.enter(entry)
        return self._until_last_call_ends if self.meets_others else self.until_it_ends

    def _last_call_ended(self, result: Any, failed: bool) -> None:
        """A call has ended that may be the last in its step. Then, the row ends here."""
        self.leave()
        self._at_call_end = self.since_ns, self._in_row()

    def hand_over(self, whole: Entry, part: Entry, ns: int) -> None:
        """Gives some of the time that one entry took in this row to another of its account."""
        ns = min(ns, whole.row_ns)
        whole.row_ns -= ns
        part.row_ns += ns
        part.count += 1

    def note(self, entry: Entry, count: int, ns: int) -> None:
        """What went on elsewhere, and took no time of this thread."""
        entry.count += count
        entry.spent_ns += ns

    def __enter__(self) -> None:
        """The capture itself is at work."""
        if self.is_mine:
            self.enter(self.own)

    def __exit__(self, *error: object) -> None:
        if self.is_mine and self.below:  # otherwise, the books have just begun or ended
            self.leave()

    @property
    def own_ns(self) -> int:
        return self.own.spent_ns + self.own.row_ns

    def steps_ended(self, count: int = 1) -> None:
        self._steps += count
        self._steps_ever += count
        if self.since_ns >= self._row_due_ns and self._is_round():
            self.close_row(self._at_call_end)

    @property
    def wants_each_step(self) -> bool:
        """Whether it must be told of each step at once, because a row may end with it."""
        return self.meets_others or self._steps_in_fit < FIRST_STEPS

    def _is_round(self) -> bool:
        """Whether other workers are likely to end a row at this step, too."""
        return (
            not self.meets_others or self._steps_in_fit % (1 << (self._steps.bit_length() - 1)) == 0
        )

    def test_step_ended(self) -> None:
        if self.since_ns >= self._row_due_ns:
            self.close_row()

    def phase_begins(self, phase: str, epoch_began: bool = False) -> int:
        """Returns the Unix time at which it begins."""
        self._items_due_ns = 0  # items belong to the phase that ends here
        self.close_row()
        self._phase = phase
        self._epoch += epoch_began
        self._row_due_ns = self._row_began_ns + self._least_row_ns()
        return self._unix_ns + self._row_began_ns

    def close_row(self, until: tuple[int, dict[Entry, int]] | None = None) -> None:
        """Closes it now or, given `until`, at that earlier moment, with what had been spent by
        then."""
        now_ns = self.clock_ns()
        self.top.row_ns += now_ns - self.since_ns
        self.since_ns = now_ns
        end_ns, in_row = until or (now_ns, self._in_row())
        row = Row(self._unix_ns + self._row_began_ns, self._phase, max(self._epoch, 0))
        row.lasted_ns = end_ns - self._row_began_ns
        row.steps, row.calls = self._steps, self.calls - self._calls_before
        row.spent_ns = spent = self._taken_from_entries(in_row)
        for account, seconds in self.in_steps().items():
            inside_ns = min(round(seconds * 1e9), spent.get(Account.STEP, 0))
            if inside_ns > 0:
                spent[Account.STEP] -= inside_ns
                spent[account] = spent.get(account, 0) + inside_ns
        if now_ns >= self._items_due_ns:
            row.items = self._new_items()
            self._items_due_ns = now_ns + ITEMS_EACH_NS
        self._row_began_ns, self._steps, self._calls_before = end_ns, 0, self.calls
        self._row_due_ns = end_ns + self._least_row_ns()
        self._at_call_end = None
        self._rows.append(row)
        if self.first_epoch is not None:
            self.first_epoch.append(row)

    @property
    def _steps_in_fit(self) -> int:
        return self._steps_ever - self._steps_before_fit

    def _least_row_ns(self) -> int:
        if self._steps_in_fit < FIRST_STEPS:
            return 0
        least_ns = LEAST_ROW_NS if self._epoch <= 0 else LEAST_LATER_ROW_NS
        return max(least_ns, (self._row_began_ns - self._began_ns) // ROWS_FOR_ALL)

    def _in_row(self) -> dict[Entry, int]:
        return {entry: entry.row_ns for entry in self._entries.values() if entry.row_ns}

    def _taken_from_entries(self, in_row: dict[Entry, int]) -> dict[str, int]:
        spent: dict[str, int] = {}
        for entry, in_all_ns in in_row.items():
            entry.row_ns -= in_all_ns
            collected_ns = min(self._collected.pop(entry, 0), in_all_ns)
            if collected_ns:
                spent[Account.GC] = spent.get(Account.GC, 0) + collected_ns
            entry_ns = in_all_ns - collected_ns
            spent[entry.account] = spent.get(entry.account, 0) + entry_ns
            entry.spent_ns += entry_ns
        return spent

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        """Python calls this on the thread that collects. It does not use `enter`, which it may
        interrupt.

        Building a graph creates so many objects that collecting garbage is a part of it."""
        if not self.is_mine or self.top.account in (Account.TRACE, Account.RETRACE):
            return
        if phase == "start":
            self._collecting_since_ns = self.clock_ns()
        elif self._collecting_since_ns:
            lasted_ns = self.clock_ns() - self._collecting_since_ns
            self._collected[self.top] = self._collected.get(self.top, 0) + lasted_ns
            self._collecting_since_ns = 0

    # ------------------------------------------------------------ what is written

    def records(self) -> Iterable[BooksRecord]:
        """What is new; if nothing is, the row that is not over. Called by the thread that
        writes."""
        rows = []
        while self._rows:
            rows.append(self._rows.popleft())
        yield from records_of(rows)
        if not rows and self.thread:
            row = self._row_under_way()
            if row.lasted_ns > 0:
                yield _record([row], is_open=True)

    def _row_under_way(self) -> Row:
        """The row as it is now; what the training thread is adding at this moment may be
        missing."""
        row = Row(self._unix_ns + self._row_began_ns, self._phase, max(self._epoch, 0))
        row.steps, row.calls = self._steps + self.untold_steps(), self.calls - self._calls_before
        top, since_ns = self.top, self.since_ns
        for entry in tuple(self._entries.values()):
            spent_ns = entry.row_ns + (self.clock_ns() - since_ns if entry is top else 0)
            if spent_ns > 0:
                row.spent_ns[entry.account] = row.spent_ns.get(entry.account, 0) + spent_ns
        row.lasted_ns = sum(row.spent_ns.values())
        if top.name:
            spent_ns = top.row_ns + self.clock_ns() - since_ns
            row.items = (BookItem(top.account, top.name, top.where, 1, spent_ns),)
        return row

    def _new_items(self) -> tuple[BookItem, ...]:
        items = []
        for entry in tuple(self._entries.values()):
            count, spent_ns = entry.count, entry.spent_ns
            before_count, before_ns = entry.told
            if entry.name and (count, spent_ns) != entry.told:
                item = (entry.account, entry.name, entry.where)
                counted = count - before_count, spent_ns - before_ns
                items.append(BookItem(*item, *counted, entry.why))
                entry.told = count, spent_ns
        return tuple(items)


def records_of(rows: Iterable[Row]) -> Iterable[BooksRecord]:
    for _, same in groupby(rows, key=lambda row: (row.phase, row.epoch)):
        yield _record([*same])


def _record(rows: list[Row], is_open: bool = False) -> BooksRecord:
    accounts = dict.fromkeys(account for row in rows for account in row.spent_ns)
    return BooksRecord(
        began_ns=rows[0].began_ns,
        phase=rows[0].phase,
        epoch=rows[0].epoch,
        lasted_ns=tuple(row.lasted_ns for row in rows),
        steps=tuple(row.steps for row in rows),
        calls=tuple(row.calls for row in rows),
        spent_ns={
            account: tuple(row.spent_ns.get(account, 0) for row in rows) for account in accounts
        },
        items=tuple(item for row in rows for item in row.items),
        is_open=is_open,
    )
