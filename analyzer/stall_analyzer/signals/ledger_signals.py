"""Where a run's time went, by its ledger: sums, times in steps and spans, stretches to show."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stall_analyzer.model.causes import CAUSES, code, codes, codes_of_bucket
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Evidence
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.intervals import Tiling, among, time_in
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Step, Timeline, starts_and_ends
from stall_analyzer.model.units import Int64s
from stall_analyzer.signals.input.input_pipeline import Spans

# A cause comes again if less than this share of its time is one-time.
MOST = 0.5
EVIDENCE_MOST = 8  # intervals shown with a finding; the longest ones


@dataclass(frozen=True)
class LedgerSignals:
    """`host` is the one whose ledger represents the run."""

    timeline: Timeline
    hosts: tuple[HostLedger, ...]
    host: HostLedger

    # ------------------------------------------------------------ time

    @property
    def window_ps(self) -> int:
        return self.timeline.window.duration_ps

    @cached_property
    def causes_ps(self) -> dict[str, int]:
        """Picoseconds per cause, zeros included."""
        return dict.fromkeys(CAUSES, 0) | self.host.ledger.causes_ps

    @cached_property
    def buckets_ps(self) -> dict[Bucket, int]:
        return self.host.ledger.buckets_ps

    def comes_again(self, cause: str) -> bool:
        """Whether most of the time lost to a cause is lost in every epoch."""
        ledger = self.host.ledger
        mine = ledger.cause == code(cause)
        once = ledger.lengths_ps[mine & ledger.one_time].sum()
        return bool(once < MOST * self.causes_ps[cause])

    def share(self, ps: int) -> float:
        """The share of the window."""
        return ps / self.window_ps if self.window_ps else 0.0

    def with_share(self, ps: int) -> str:
        """`2.4 s (31% of the first epoch)`"""
        return f"{seconds(ps)} ({percent(ps, self.window_ps)} of the first epoch)"

    @property
    def covered_share(self) -> float:
        return self.share(self.host.covered_ps)

    @property
    def later_epoch_ps(self) -> int | None:
        """How long a later epoch takes, where one was logged or traced."""
        later = self.timeline.later_epochs_ps
        return int(median(later)) if later else None

    # ------------------------------------------------------------ steps

    @cached_property
    def training_steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self.timeline.steps if step.phase == "training")

    def per_step_ps(self, *causes: str) -> Int64s:
        """How much time of these causes lies in each training step."""
        return self.time_of(*starts_and_ends(self.training_steps), *causes)

    def step_periods(self) -> tuple[Int64s, Int64s]:
        """From the end of one step to the end of the next: a loop reads its data in between."""
        start, end = starts_and_ends(self.timeline.steps)
        return np.concatenate([start[:1], end[:-1]]), end

    def time_of(self, start: Int64s, end: Int64s, *causes: str) -> Int64s:
        """How much time of these causes lies in each interval."""
        return time_in(self._tiling, start, end, codes(*causes))

    def time_of_buckets(self, spans: Spans, *buckets: str) -> int:
        """How much time of these buckets lies in the spans."""
        causes = np.concatenate([codes_of_bucket(bucket) for bucket in buckets])
        return int(time_in(self._tiling, *spans, causes).sum())

    def one_time_in(self, spans: Spans) -> int:
        """How much of the time in the spans will not come again."""
        ledger = self.host.ledger
        once = Tiling(ledger.bounds_ps, ledger.one_time.astype(np.int64))
        return int(time_in(once, *spans, np.array([1])).sum())

    def intervals_of(self, *causes: str) -> tuple[Int64s, Int64s]:
        """When these causes applied, in window time."""
        ledger = self.host.ledger
        mine = among(ledger.cause, codes(*causes))
        return ledger.bounds_ps[:-1][mine], ledger.bounds_ps[1:][mine]

    @cached_property
    def _tiling(self) -> Tiling:
        return self.host.ledger.tiling

    # ------------------------------------------------------------ evidence

    def evidence_of(self, cause: str, label: str) -> tuple[Evidence, ...]:
        """The longest stretches of a cause, in order of time."""
        return self.evidence_at(*self.intervals_of(cause), label)

    def evidence_at(self, start: Int64s, end: Int64s, label: str) -> tuple[Evidence, ...]:
        """The longest of the stretches, in order of time, inside the window."""
        start, end = (np.clip(bound, 0, self.window_ps) for bound in (start, end))
        longest = np.argsort(start - end, kind="stable")[:EVIDENCE_MOST]
        line = self.host.training_thread or ""
        return tuple(
            Evidence(self.host.host, line, int(start[i]), int(end[i]), label)
            for i in sorted(longest, key=lambda i: start[i])
        )
