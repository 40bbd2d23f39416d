"""Hosts that make the others wait: how often, for how long, and why.

A straggler is late in most meetings, or so late in a few that it matters. Several may take turns
being late. On equal hosts, each one comes last now and then, and that is not a fault.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.model.causes import CAUSES, ONE_TIME, bucket_of
from stall_analyzer.model.columns import distinct
from stall_analyzer.model.findings import LateHost, Lateness, LateReason, LateStep
from stall_analyzer.model.intervals import enclosing
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.timeline import Timeline, starts_and_ends
from stall_analyzer.model.units import NEVER, PS_PER_MS, Bools, Float64s, Int64s
from stall_analyzer.signals.cluster.gatherings import Gatherings, gatherings_of

# Below a twentieth of the time it does not matter who came last.
NOTICED_SHARE = 0.05
# Threads wake up a millisecond or two apart on a busy machine: a host that is this little later
# than the others is on time.
PUNCTUAL_PS = 3 * PS_PER_MS
# A host that causes this much of all waiting is a straggler; one that causes less is, only if its
# ledger explains it.
MOST_OF_IT = 0.7
# Next to a host that costs five times as much, another is not worth mentioning.
LESSER_SHARE = 0.2
# What explains less than this share of the delay is not its reason.
EXPLAINED_SHARE = 0.5
# It was late once if this much of what it cost will not recur.
ONCE_SHARE = 0.6

# What a host did not do itself, or what is not known, is not a reason for its being late.
NO_REASON = ("communication", "profiler", "unknown")


def lateness_of(timeline: Timeline, ledgers: Sequence[HostLedger]) -> Lateness:
    if timeline.meetings is None:
        return Lateness()
    met = gatherings_of(timeline.meetings, ledgers)
    step = enclosing(*starts_and_ends(timeline.steps), met.end_ps).astype(np.int64)
    cost = np.where(_is_known(met) & (met.cost_ps >= PUNCTUAL_PS), met.cost_ps, 0)
    late = [
        _late_host(met, cost, step, np.flatnonzero(met.last == host)) for host in distinct(met.last)
    ]
    waited = np.where(met.waited_ps == NEVER, 0, met.waited_ps).sum(axis=0)
    return Lateness(
        meetings=len(met),
        waited_ps={host: int(ps) for host, ps in zip(met.hosts, waited, strict=True)},
        hosts=tuple(sorted(late, key=lambda host: -host.cost_ps)),
        steps=_late_steps(met, cost, step),
    )


def stragglers_among(late: Sequence[LateHost], seen_ps: int) -> tuple[LateHost, ...]:
    """Those that cost enough of the time that was seen, and are late rather than unlucky."""
    whole = sum(host.cost_ps for host in late)
    if whole == 0 or seen_ps == 0:
        return ()
    least = max(NOTICED_SHARE * seen_ps, LESSER_SHARE * max(host.cost_ps for host in late))
    return tuple(
        host
        for host in late
        if host.cost_ps >= least and (host.cost_ps >= MOST_OF_IT * whole or host.reason.bucket)
    )


def _is_known(met: Gatherings) -> Bools:
    """Whether the delay came after the traces began. What a host did before is not known: processes
    of one job start at different times, which is not what holds up the steps."""
    unknown = np.array([bucket_of(cause) == "unknown" for cause in CAUSES])
    return np.asarray(met.beyond_ps[:, unknown].sum(axis=1) < EXPLAINED_SHARE * met.cost_ps)


def _late_host(met: Gatherings, cost: Int64s, step: Int64s, mine: Int64s) -> LateHost:
    total = int(cost[mine].sum())
    felt = mine[cost[mine] > 0]
    beyond = met.beyond_ps[felt].sum(axis=0)
    single = int(cost[mine].max(initial=0))
    one_time = float(np.maximum(beyond[ONE_TIME], 0).sum())
    return LateHost(
        host=met.hosts[int(met.last[mine[0]])],
        times=len(mine),
        late_steps=len(distinct(step[felt])),
        cost_ps=total,
        reason=_reason(beyond, total),
        once=max(single, one_time) >= ONCE_SHARE * total,
        start_ps=met.start_ps[felt],
        end_ps=met.end_ps[felt],
    )


def _reason(beyond_ps: Float64s, cost_ps: int) -> LateReason:
    """The bucket in which it did most beyond the others, if that explains the delay."""
    by_bucket: dict[Bucket, float] = {}
    for cause, ps in zip(CAUSES, beyond_ps.tolist(), strict=True):
        if (bucket := bucket_of(cause)) not in NO_REASON:
            by_bucket[bucket] = by_bucket.get(bucket, 0.0) + ps
    worst = max(by_bucket, key=lambda bucket: by_bucket[bucket])
    if cost_ps <= 0 or by_bucket[worst] < EXPLAINED_SHARE * cost_ps:
        return LateReason()
    inside = [i for i, cause in enumerate(CAUSES) if bucket_of(cause) == worst]
    cause = CAUSES[max(inside, key=lambda i: beyond_ps[i])]
    return LateReason(worst, cause, round(by_bucket[worst]))


def _late_steps(met: Gatherings, cost: Int64s, step: Int64s) -> tuple[LateStep, ...]:
    """One for each step: whoever cost most in it. Meetings outside all steps stay separate."""
    fresh = np.flatnonzero(np.diff(step, prepend=-2) | (step < 0))
    return tuple(
        _late_step(met, cost, int(step[here[0]]), here)
        for here in np.split(np.arange(len(step)), fresh[1:])
    )


def _late_step(met: Gatherings, cost: Int64s, step: int, here: Int64s) -> LateStep:
    candidates = distinct(met.last[here])
    per_host = [int(cost[here[met.last[here] == host]].sum()) for host in candidates]
    host = int(candidates[int(np.argmax(per_host))])
    mine = here[met.last[here] == host]
    total = int(cost[mine].sum())
    at = int(met.end_ps[mine[cost[mine].argmax()]])
    cause = _reason(met.beyond_ps[mine].sum(axis=0), total).cause
    return LateStep(step, met.hosts[host], total, at, cause)
