"""The window divided among causes: what `attribute` returns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from stall_analyzer.model.causes import BUCKETS, CAUSES, bucket_of, codes_of_bucket
from stall_analyzer.model.columns import between
from stall_analyzer.model.intervals import Tiling, among, refine
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Bools, Int64s, UInt8s


@dataclass(frozen=True)
class Ledger:
    """Segments that tile the window: segment i is [bounds_ps[i], bounds_ps[i + 1]).

    `cause` indexes causes.CAUSES; `one_time` says whether the segment occurs only in the first
    epoch. The sums below are exact because they are sums of the tiles.
    """

    bounds_ps: Int64s
    cause: UInt8s
    one_time: Bools

    def cut_at(self, bounds_ps: Int64s) -> Ledger:
        """The same, with segments that also end there."""
        rows = Tiling(self.bounds_ps, np.arange(len(self.cause), dtype=np.int64))
        bounds, row = refine(rows, bounds_ps)
        return Ledger(bounds, self.cause[row], self.one_time[row])

    @cached_property
    def lengths_ps(self) -> Int64s:
        return between(self.bounds_ps)

    @property
    def tiling(self) -> Tiling:
        return Tiling(self.bounds_ps, self.cause.astype(np.int64))

    @cached_property
    def causes_ps(self) -> dict[str, int]:
        """Picoseconds per cause, only those that occur."""
        sums = np.zeros(len(CAUSES), dtype=np.int64)
        np.add.at(sums, self.cause, self.lengths_ps)
        return {cause: int(ps) for cause, ps in zip(CAUSES, sums, strict=True) if ps}

    @cached_property
    def buckets_ps(self) -> dict[Bucket, int]:
        """Picoseconds per bucket, all nine."""
        sums = dict.fromkeys(BUCKETS, 0)
        for cause, ps in self.causes_ps.items():
            sums[bucket_of(cause)] += ps
        return sums

    def one_time_ps(self, bucket: str | None = None) -> int:
        mine = self.one_time
        if bucket is not None:
            mine = mine & among(self.cause, codes_of_bucket(bucket))
        return int(self.lengths_ps[mine].sum())


@dataclass(frozen=True)
class HostLedger:
    """One host's ledger, from all sessions that saw a part of the window."""

    host: str
    ledger: Ledger
    covered_ps: int
    training_thread: str | None
    evidence: Mapping[str, str]  # for each subject, one sentence on what could be seen
    notes: tuple[Note, ...] = ()
