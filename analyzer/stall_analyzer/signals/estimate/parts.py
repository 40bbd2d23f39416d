"""Where a part of the epoch probably went, and how far off that may be.

A part is a stretch of the window that was not traced. Its likely times are shares of its length.
Its doubt is the share of that length that may have gone to something else: `(1 - doubt)` of each
likely time is taken to be true, and the rest may be anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from stall_analyzer.model.causes import BUCKETS, CAUSES, bucket_of, code
from stall_analyzer.model.estimate import Range
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.records import dataclass

UNTRACED = code("unknown.not_traced")
# No share of a part is known better than this.
LEAST_DOUBT = 0.05
# What may be lost by rounding down each cause of each part.
ROUNDING_PS = 1000
NEXT_TO_NOTHING = 1000  # less than one part in this many of the epoch counts as nothing


@dataclass(frozen=True)
class Part:
    """A stretch that was not traced, divided by what is known about it."""

    likely_ps: Mapping[str, float]  # by cause; sums to its length
    once: bool  # belongs only to the first epoch
    doubt: float  # from 0 to 1
    # Buckets that the doubted time may belong to, besides its own.
    rivals: tuple[Bucket, ...] = ()

    @property
    def length_ps(self) -> float:
        return sum(self.likely_ps.values())


def divided(
    length_ps: float, shares: Mapping[str, float], once: bool, doubt: float, *rivals: Bucket
) -> Part:
    """A stretch divided among causes by their shares, whatever these sum to."""
    whole = sum(shares.values()) or 1.0
    likely = {cause: length_ps * share / whole for cause, share in shares.items()}
    return Part(likely, once, doubt, rivals)


def likely_ledger(exact: Ledger, parts: Iterable[Part]) -> Ledger:
    """The sums of the exact ledger, with what was not traced given to the causes of the parts."""
    once, always = (np.zeros(len(CAUSES), dtype=np.int64) for _ in range(2))
    lengths = exact.lengths_ps
    np.add.at(once, exact.cause[exact.one_time], lengths[exact.one_time])
    np.add.at(always, exact.cause[~exact.one_time], lengths[~exact.one_time])
    left = int(once[UNTRACED] + always[UNTRACED])
    once[UNTRACED] = always[UNTRACED] = 0
    largest = (0, always, UNTRACED)
    for part in parts:
        sums = once if part.once else always
        for cause, ps in part.likely_ps.items():
            given = min(int(ps), left)  # never more than there is: what is left stays unknown
            sums[code(cause)] += given
            left -= given
            largest = max(largest, (given, sums, code(cause)), key=lambda entry: entry[0])
    _, sums, cause_code = largest
    rounding = left if left < ROUNDING_PS else 0
    sums[cause_code] += rounding
    always[UNTRACED] += left - rounding
    return Ledger(
        bounds_ps=np.concatenate([[0], np.cumsum(np.concatenate([once, always]))]),
        cause=np.tile(np.arange(len(CAUSES), dtype=np.uint8), 2),
        one_time=np.repeat([True, False], len(CAUSES)),
    )


def ranges(likely: Ledger, exact: Ledger, parts: Sequence[Part]) -> dict[Bucket, Range]:
    """The range of every bucket: never less than was traced, never more than there is time for."""
    whole_ps = int(likely.bounds_ps[-1])
    traced, likely_ps = exact.buckets_ps, likely.buckets_ps
    found = {}
    for bucket in BUCKETS:
        known = traced[bucket] if bucket != "unknown" else 0
        less = sum(_could_be_less(part, bucket) for part in parts)
        more = sum(_could_be_more(part, bucket) for part in parts)
        low = round(likely_ps[bucket] - less)
        low = max(low if low > whole_ps // NEXT_TO_NOTHING else 0, known)
        high = min(round(likely_ps[bucket] + more), whole_ps)
        found[bucket] = Range(min(low, likely_ps[bucket]), max(high, likely_ps[bucket]))
    return found


def _in_bucket(part: Part, bucket: Bucket) -> float:
    return sum(ps for cause, ps in part.likely_ps.items() if bucket_of(cause) == bucket)


def _could_be_less(part: Part, bucket: Bucket) -> float:
    mine = _in_bucket(part, bucket)
    return min(part.doubt * mine + LEAST_DOUBT * part.length_ps, mine)


def _could_be_more(part: Part, bucket: Bucket) -> float:
    """The doubted time of other buckets may belong to this one, if it is in the part or a rival."""
    mine = _in_bucket(part, bucket)
    if not mine and bucket not in part.rivals:
        return 0.0
    return max(part.doubt, LEAST_DOUBT) * (part.length_ps - mine)
