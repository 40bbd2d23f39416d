"""From the ledger to one verdict: what holds the run up, and whether to wait or to act."""

from __future__ import annotations

import numpy as np

from stall_analyzer.attribute.numerics import ends_nonfinite
from stall_analyzer.causes import BUCKETS, CAUSES, bucket_of
from stall_analyzer.format import percent, seconds
from stall_analyzer.model import HostLedger, Ledger, Timeline, Verdict

ACTIONABLE = ("input", "compile", "memory", "numerics", "communication", "host")
# Below a fifth of the epoch, no change to a bucket is felt; the run is as fast as its model.
ACT_SHARE = 0.2
# A bucket is "slow once" when most of its time will not come back.
ONCE_SHARE = 0.6
# When more than half is unknown, naming a cause would be guessing.
UNKNOWN_SHARE = 0.5
# What the instruments cost is named in the ledger and left out of the verdict.
INSTRUMENTS = ("host.summary",)
# Later epochs shorter by this factor show one-time cost without any trace.
SLOWER_FIRST = 1.5


def diagnose(timeline: Timeline, hosts: tuple[HostLedger, ...]) -> tuple[Ledger, Verdict]:
    """The ledger that stands for the run, and the verdict on it."""
    reference = max(hosts, key=lambda host: (host.training_thread is not None, host.covered_ps))
    return reference.ledger, _verdict(timeline, reference)


def totals(ledger: Ledger) -> dict[str, int]:
    """Picoseconds per cause, only those that occur."""
    sums = np.zeros(len(CAUSES), dtype=np.int64)
    np.add.at(sums, ledger.cause, np.diff(ledger.bounds_ps))
    return {cause: int(ps) for cause, ps in zip(CAUSES, sums, strict=True) if ps}


def bucket_totals(ledger: Ledger) -> dict[str, int]:
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


def _verdict(timeline: Timeline, host: HostLedger) -> Verdict:
    ledger, duration = host.ledger, timeline.window.duration_ps
    buckets = bucket_totals(ledger)
    causes = totals(ledger)
    if duration == 0:
        return Verdict("unknown", "unknown", "Nothing was recorded.", 0.0)
    if timeline.events is not None and ends_nonfinite(timeline.events):
        return Verdict(
            "learning_nothing",
            "numerics",
            "The loss is not a number: from there on the run computes for nothing.",
            0.95,
        )
    costs = {b: buckets[b] - sum(causes.get(c, 0) for c in INSTRUMENTS if bucket_of(c) == b)
             for b in ACTIONABLE}  # fmt: skip
    primary = max(costs, key=lambda b: costs[b])
    unknown = buckets["unknown"] / duration
    confidence = round(min(0.95, (1 - unknown)), 2)
    if costs[primary] >= ACT_SHARE * duration and costs[primary] / duration > unknown / 2:
        return _stalled(timeline, ledger, primary, costs[primary], confidence)
    if unknown > UNKNOWN_SHARE:
        return _unknown(timeline, host, confidence)
    return Verdict(
        "healthy",
        "compute",
        f"Healthy: {percent(buckets['compute'], duration)} of the first epoch "
        f"({seconds(duration)}) is the model's own computing.",
        confidence,
    )


def _stalled(
    timeline: Timeline, ledger: Ledger, primary: str, cost: int, confidence: float
) -> Verdict:
    duration = timeline.window.duration_ps
    once = one_time_ps(ledger, primary)
    worst = max(
        (c for c in totals(ledger) if bucket_of(c) == primary and c not in INSTRUMENTS),
        key=lambda c: totals(ledger)[c],
    )
    where = f"{worst.partition('.')[2].replace('_', ' ')}, {seconds(totals(ledger)[worst])}"
    said = f"{seconds(cost)} of {seconds(duration)} ({percent(cost, duration)})"
    if primary == "numerics":
        sentence = f"Numerics: {said} taught the model nothing (most of it {where})."
        return Verdict("learning_nothing", primary, sentence, confidence)
    if once >= ONCE_SHARE * cost:
        sentence = (
            f"Slow once: {said} of the first epoch went to {primary} (most of it {where}); "
            f"{seconds(once)} of that will not come back."
        )
        return Verdict("slow_once", primary, sentence, confidence)
    sentence = (
        f"Slow in every epoch: {said} of the first epoch went to {primary} (most of it {where})."
    )
    return Verdict("slow_always", primary, sentence, confidence)


def _unknown(timeline: Timeline, host: HostLedger, confidence: float) -> Verdict:
    duration, later = timeline.window.duration_ps, timeline.later_epochs_ps
    seen = (
        f"the profile covers {percent(host.covered_ps, duration)} of it"
        if host.covered_ps
        else "there is no profile of it"
    )
    if later and duration > SLOWER_FIRST * float(np.median(later)):
        usual = int(np.median(later))
        return Verdict(
            "slow_once",
            "unknown",
            f"The first epoch took {seconds(duration)}, later ones {seconds(usual)}: "
            f"{seconds(duration - usual)} came once, but {seen}, so the cause is not known.",
            max(confidence, 0.5),
        )
    return Verdict(
        "unknown", "unknown", f"The first epoch took {seconds(duration)}, but {seen}.", confidence
    )
