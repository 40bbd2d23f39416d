"""A time sheet: at any instant, one entry is on top, and the time belongs to it.

In C if possible (_time_sheet.h): Python between two steps costs several times what it takes by
itself, because it finds nothing in the caches and lets the threads of TensorFlow fall asleep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple


class EntryInPython:
    __slots__ = ("count", "rank", "row_ns")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.row_ns = 0  # the time that it was on top
        self.count = 0  # how often it was entered


class SheetInPython:
    """Kept for one thread. Only its owner takes time off the entries."""

    def __init__(self, clock_ns: Callable[[], int], top: Any) -> None:
        self.clock_ns = clock_ns
        self.top = top
        self.below: list[Any] = []
        self.since_ns = 0
        self.thread = 0

    def enter(self, entry: Any) -> None:
        entry.count += 1
        self._time_passes()
        self.below.append(self.top)
        self.top = entry

    def leave(self, *outcome: Any) -> None:
        """It may be told how a call has ended, which does not matter."""
        self._time_passes()
        self.top = self.below.pop()

    def _time_passes(self) -> None:
        now_ns = self.clock_ns()
        self.top.row_ns += now_ns - self.since_ns
        self.since_ns = now_ns


if TYPE_CHECKING:
    BasicEntry = EntryInPython
    BasicSheet = SheetInPython
else:
    try:
        _in_c = import_module("tb_stall_plugin.capture.training._around")
        BasicEntry, BasicSheet = _in_c.Entry, _in_c.Sheet
    except ImportError:
        BasicEntry, BasicSheet = EntryInPython, SheetInPython


class Span(NamedTuple):
    """What the calls of an `Around` belong to."""

    sheet: BasicSheet
    entry: BasicEntry

    def begins(self) -> bool:
        """False if the call is made by another thread, or belongs to what is on top."""
        sheet, entry = self
        is_ours = threading.get_ident() == sheet.thread and sheet.top.rank < entry.rank
        if is_ours:
            sheet.enter(entry)
        return is_ours
