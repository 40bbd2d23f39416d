"""The window divided among causes: what `attribute` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stall_analyzer.model.notes import Note
from stall_analyzer.model.units import Bools, Int64s, UInt8s


@dataclass(frozen=True)
class Ledger:
    """Segments that tile the window: segment i is [bounds_ps[i], bounds_ps[i + 1]).

    `cause` indexes causes.CAUSES; `one_time` says whether the segment belongs to the first epoch
    alone. The sums below are exact because they are sums of the tiles.
    """

    bounds_ps: Int64s
    cause: UInt8s
    one_time: Bools


@dataclass(frozen=True)
class HostLedger:
    """One host's ledger, from all sessions that saw a part of the window."""

    host: str
    ledger: Ledger
    covered_ps: int
    training_thread: str | None
    evidence: Mapping[str, str]  # per subject one sentence on what could be seen
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Sample:
    """The profiled part of an epoch's usual steps, and the epoch as it probably was."""

    stretches_ps: tuple[tuple[int, int], ...]  # profiled steps without a break, in window time
    profiled_steps: int
    steps: int  # of the epoch
    estimated_ps: int  # of untraced steps
    doubt: float  # from 0 to 1: how far neighbouring windows disagree
    ledger: Ledger  # for its sums alone: its tiles are in no order of time

    @property
    def words(self) -> str:
        return f"estimated from {self.profiled_steps:,} profiled steps of {self.steps:,}"

    @property
    def profiled_ps(self) -> int:
        return sum(end - begin for begin, end in self.stretches_ps)

    @property
    def times(self) -> float:
        """How much longer all usual steps took than the profiled ones."""
        return 1 + self.estimated_ps / max(self.profiled_ps, 1)
