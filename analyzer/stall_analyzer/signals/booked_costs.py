"""What the books say about the first epoch, by name: callbacks, functions, saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stall_analyzer.model.books import Books
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_NS


@dataclass(frozen=True)
class BookedCost:
    """What one function, or one hook of a callback, took in the epoch."""

    account: str  # a word of capture_format.Account
    name: str
    where: str  # path:line of the code
    count: int
    spent_ps: int
    why: str = ""  # if it was traced again: the arguments that had changed

    @property
    def where_sentence(self) -> str:
        """` The code is at train.py:41.`; empty where that is not known."""
        return f" The code is at {self.where}." if self.where else ""


def booked_costs(books: Books | None, window: Window) -> tuple[BookedCost, ...]:
    """Costliest first; nothing where no books were kept."""
    if books is None or window.start_unix_ns is None:
        return ()
    end_ns = window.start_unix_ns + window.duration_ps // PS_PER_NS
    found: dict[tuple[str, str, str], BookedCost] = {}
    for dated in books.items:
        if window.start_unix_ns <= dated.begin_ns < end_ns:
            item = dated.item
            key = item.account, item.name, item.where
            before = found.get(key, BookedCost(*key, 0, 0))
            spent_ps = before.spent_ps + item.spent_ns * PS_PER_NS
            found[key] = replace(
                before,
                count=before.count + item.count,
                spent_ps=spent_ps,
                why=item.why or before.why,
            )
    return tuple(sorted(found.values(), key=lambda cost: -cost.spent_ps))


def costliest(costs: Sequence[BookedCost], *accounts: str) -> BookedCost | None:
    return next((cost for cost in costs if cost.account in accounts), None)
