"""The books of a captured process: how its training thread spent its time, by clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from stall_analyzer.captures.capture_records import BookItem
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Bools, Int64s


@dataclass(frozen=True)
class DatedItem:
    """An item of the books, and when it was recorded."""

    begin_ns: int
    end_ns: int
    phase: str
    item: BookItem


@dataclass(frozen=True)
class Books:
    """Rows in order of time, which do not overlap, in unix time. The accounts of a row add up to
    its length.
    """

    begin_ns: Int64s
    end_ns: Int64s
    phase: tuple[str, ...]  # one of capture_format.BookPhase for each row
    epoch: Int64s
    steps: Int64s
    calls: Int64s
    spent_ns: Mapping[str, Int64s] = field(default_factory=dict)  # by capture_format.Account
    items: tuple[DatedItem, ...] = ()

    def __len__(self) -> int:
        return len(self.begin_ns)

    def spent(self, account: str) -> Int64s:
        """What an account took in each row."""
        nothing = np.zeros(len(self), dtype=np.int64)
        return self.spent_ns.get(account, nothing)

    def in_phase(self, *phases: str) -> Bools:
        return np.array([phase in phases for phase in self.phase], dtype=np.bool_)

    @property
    def is_eager(self) -> Bools:
        """Rows whose steps call no compiled function."""
        return np.asarray((self.steps > 0) & (self.calls == 0))
