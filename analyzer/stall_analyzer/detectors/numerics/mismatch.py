"""A layer, a loss or a value that does not fit the rest: the parts of ST307."""

from __future__ import annotations

from stall_analyzer.model.findings import Change
from stall_analyzer.model.records import dataclass

# The worst first. "impossible": lost whatever the loss says; "wrong": lost if the loss does not
# move; "suspect": works, but lost if the loss does not move; "odd": works.
KINDS = ("impossible", "wrong", "suspect", "odd")


@dataclass(frozen=True)
class Mismatch:
    title: str
    why: str
    change: Change
    kind: str = KINDS[0]
