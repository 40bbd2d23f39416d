"""Which bucket the verdict is about: the costliest one that can be changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stall_analyzer.model.findings import Finding
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import Ledger

ACTIONABLE: tuple[Bucket, ...] = ("input", "compile", "memory", "numerics", "communication", "host")
# Below a fifth of the epoch, nobody would notice a change; the run is as fast as its model. A
# one-time cost can be waited out, and must be larger to be worth acting on.
ACT_SHARE = 0.2
ACT_SHARE_ONCE = 0.25
# A bucket is "slow once" when most of its time will not recur.
ONCE_SHARE = 0.6


def costs_of(ledger: Ledger) -> dict[Bucket, int]:
    """Picoseconds per bucket. The cost of the instruments is not a reason to act."""
    return {**ledger.buckets_ps, "profiler": 0}


def worked_ps(ledger: Ledger) -> int:
    """The window without what the instruments cost."""
    return sum(costs_of(ledger).values())


def primary_bucket(ledger: Ledger, findings: Sequence[Finding]) -> Bucket | None:
    """The costliest bucket that is worth acting on; None if there is none.

    It yields to another bucket if a change there is sure to save more than any change here can: a
    graph has to be built once, so little of that can be saved.
    """
    costs = costs_of(ledger)
    worth = [bucket for bucket in ACTIONABLE if _is_worth_acting(ledger, bucket, findings)]
    if not worth:
        return None
    costliest = max(worth, key=lambda bucket: costs[bucket])
    most = max((f.gain.high_ps for f in findings if f.bucket == costliest), default=0)
    surely = {bucket: max(_sure_gains(findings, bucket), default=0) for bucket in worth}
    better = max(worth, key=lambda bucket: surely[bucket])
    return better if 0 < most < surely[better] else costliest


def is_mostly_once(ledger: Ledger, bucket: Bucket) -> bool:
    return ledger.one_time_ps(bucket) >= ONCE_SHARE * costs_of(ledger)[bucket]


def _is_worth_acting(ledger: Ledger, bucket: Bucket, findings: Iterable[Finding]) -> bool:
    """A one-time cost below the model's own computation is worth it only if easy to change."""
    costs, worked = costs_of(ledger), worked_ps(ledger)
    cost = costs[bucket]
    if not is_mostly_once(ledger, bucket):
        return cost > 0 and cost >= ACT_SHARE * worked
    can_be_changed = any(f.bucket == bucket and f.severity == "act" for f in findings)
    return cost >= ACT_SHARE_ONCE * worked and (cost >= costs["compute"] or can_be_changed)


def _sure_gains(findings: Iterable[Finding], bucket: Bucket) -> list[int]:
    return [f.gain.low_ps for f in findings if f.bucket == bucket and f.severity == "act"]
