"""The whole first epoch as it probably was, where only parts of it were traced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import Ledger


@dataclass(frozen=True)
class Range:
    """Picoseconds between which the truth lies in nine cases of ten."""

    low_ps: int
    high_ps: int


@dataclass(frozen=True)
class Estimate:
    """Beside the exact ledger, never in its place. Its likely values sum to the window."""

    ledger: Ledger  # the likely values, for its sums alone: its tiles are in no order of time
    ranges: Mapping[Bucket, Range]  # of every bucket
    rests_on: tuple[str, ...]  # one sentence for each thing that it was made from
    estimated_ps: int  # how much of the window was not traced
    profiled_steps: int  # usual steps, from their beginning to their end
    steps: int | None  # of the epoch, where it is known
    # Profiled steps without a break, in window time, and how much longer all the usual steps took.
    stretches_ps: tuple[tuple[int, int], ...] = ()
    times: float = 1.0

    @property
    def words(self) -> str:
        if not self.profiled_steps:
            return "estimated from what was logged"
        of_all = f" of {self.steps:,}" if self.steps is not None else ""
        steps = "step" if self.profiled_steps == 1 else "steps"
        return f"estimated from {self.profiled_steps:,} profiled {steps}{of_all}"

    @property
    def profiled_ps(self) -> int:
        return sum(end - begin for begin, end in self.stretches_ps)
