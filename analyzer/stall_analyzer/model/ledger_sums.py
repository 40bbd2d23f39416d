"""Sums over a ledger; exact, because they are sums of its tiles."""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.causes import BUCKETS, CAUSES, bucket_of
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import Ledger


def totals(ledger: Ledger) -> dict[str, int]:
    """Picoseconds per cause, only those that occur."""
    sums = np.zeros(len(CAUSES), dtype=np.int64)
    np.add.at(sums, ledger.cause, np.diff(ledger.bounds_ps))
    return {cause: int(ps) for cause, ps in zip(CAUSES, sums, strict=True) if ps}


def bucket_totals(ledger: Ledger) -> dict[Bucket, int]:
    """Picoseconds per bucket, all nine."""
    sums = dict.fromkeys(BUCKETS, 0)
    for cause, ps in totals(ledger).items():
        sums[bucket_of(cause)] += ps
    return sums


def one_time_ps(ledger: Ledger, bucket: str | None = None) -> int:
    lengths = np.diff(ledger.bounds_ps)
    mine = ledger.one_time.copy()
    if bucket is not None:
        member = np.array([bucket_of(cause) == bucket for cause in CAUSES])
        mine &= member[ledger.cause]
    return int(lengths[mine].sum())
