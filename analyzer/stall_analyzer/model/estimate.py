"""The whole first epoch as it probably was, where only parts of it were traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.records import dataclass


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
    # Of an epoch whose books were kept: what comes again, in all its training and in the stretches.
    booked_ps: Mapping[Bucket, tuple[int, int]] = field(default_factory=dict)

    def times_of(self, buckets: Sequence[Bucket]) -> float:
        """How much more of these there was in all the usual steps than in the profiled ones."""
        whole, profiled = (
            sum(self.booked_ps[bucket][i] for bucket in buckets if bucket in self.booked_ps)
            for i in (0, 1)
        )
        return whole / profiled if profiled else self.times

    @property
    def words(self) -> str:
        if not self.profiled_steps:
            return "estimated from what was logged"
        of_all = f" of {self.steps:,}" if self.steps is not None else ""
        steps = "step" if self.profiled_steps == 1 else "steps"
        profiled = f"{self.profiled_steps:,} profiled {steps}{of_all}"
        if self.booked_ps:
            return f"{profiled}, and the capture's clocks for the others"
        return f"estimated from {profiled}"

    @property
    def profiled_ps(self) -> int:
        return sum(end - begin for begin, end in self.stretches_ps)
