"""The whole first epoch as it probably was, if only parts of it were traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class Range:
    """Picoseconds between which the true value is in nine cases out of ten."""

    low_ps: int
    high_ps: int


@dataclass(frozen=True)
class Estimate:
    """Kept next to the exact ledger, never in place of it. Its likely values sum to the window."""

    # The likely values; only its sums mean something, since its tiles are not in order of time.
    ledger: Ledger
    ranges: Mapping[Bucket, Range]  # for every bucket
    rests_on: tuple[str, ...]  # one sentence for each thing that it is based on
    estimated_ps: int  # how much of the window was not traced
    profiled_steps: int  # usual steps, from their beginning to their end
    steps: int | None  # in the epoch, if known
    # Stretches of profiled steps without a break, in window time, and how much longer all the usual
    # steps took.
    stretches_ps: tuple[tuple[int, int], ...] = ()
    times: float = 1.0
    # If there are books: the recurring time in all of training and in the stretches.
    booked_ps: Mapping[Bucket, tuple[int, int]] = field(default_factory=dict)

    def times_of(self, buckets: Sequence[Bucket]) -> float:
        """How many times more of these there was in all the usual steps than in the profiled
        ones."""
        whole, profiled = (
            sum(self.booked_ps[bucket][i] for bucket in buckets if bucket in self.booked_ps)
            for i in (0, 1)
        )
        return whole / profiled if profiled else self.times

    @property
    def words(self) -> str:
        if not self.profiled_steps:
            return "estimated from what was logged"
        of_all = f" out of {self.steps:,}" if self.steps is not None else ""
        steps = "step" if self.profiled_steps == 1 else "steps"
        profiled = f"{self.profiled_steps:,} profiled {steps}{of_all}"
        if self.booked_ps:
            return f"based on {profiled}, and on the capture's clocks for the others"
        return f"estimated from {profiled}"

    @property
    def profiled_ps(self) -> int:
        return sum(end - begin for begin, end in self.stretches_ps)
