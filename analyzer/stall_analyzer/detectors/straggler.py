"""One worker is late in every step, and the others wait for it.

What it finds
Of several recorded hosts, the one that comes last to most of their common collectives.

Why it stalls
Synchronous training goes at the pace of its slowest worker.

How it is measured
The same collective is found on each host by its group and instance keys. It ends everywhere at
once, so the host for which it is shortest came last. What that host did more of than the others,
by its own ledger, is the reason.

Example
worker1 came last to 39 of 40 all-reduces; the other waited 2.0 s for it. worker1 spent 2.0 s more
than the other in Python between its steps.

What to do
Mend that worker first: its findings are the run's findings.

Blind spots
Needs traces of at least two hosts from the same time. A host that was not recorded may be the late
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.answers import Change, Finding
from stall_analyzer.detectors.base import severity_of
from stall_analyzer.format import percent, seconds
from stall_analyzer.model import PS_PER_MS, HostLedger
from stall_analyzer.signals import Signals
from stall_analyzer.sums import bucket_totals
from stall_analyzer.whatif import every_epoch, partly

ID = "ST502"
NAME = "straggler"
BUCKET = "communication"

# A few meetings say nothing, and on equal workers each is the last half of the time.
MEETINGS_LEAST = 10
MOSTLY_LAST = 0.7
# Threads wake up a millisecond or two apart on a busy machine.
PUNCTUAL_PS = 3 * PS_PER_MS
# What explains less than half of the delay is not its reason.
EXPLAINED_SHARE = 0.5
# With it on time, the next slowest sets the pace.
LEAST_WON, MOST_WON = 0.6, 1.0


def check(signals: Signals) -> Finding | None:
    meetings = signals.collectives
    if meetings.meetings < MEETINGS_LEAST:
        return None
    late = max(meetings.last_to_come, key=lambda host: meetings.last_to_come[host])
    last = meetings.last_to_come[late]
    waiting = max(meetings.waited_ps, key=lambda host: meetings.waited_ps[host])
    lost = min(meetings.waited_ps[waiting], signals.window_ps)
    severity = severity_of(signals.share(lost))
    punctual = lost < PUNCTUAL_PS * meetings.meetings
    if severity is None or punctual or last < MOSTLY_LAST * meetings.meetings:
        return None
    bucket, more = _what_it_does_more(late, signals.hosts)
    if more < EXPLAINED_SHARE * lost:
        more = 0
    gain = partly(lost, LEAST_WON, MOST_WON)
    return Finding(
        id=ID,
        name=NAME,
        bucket=BUCKET,
        severity=severity,
        title=f"{late} is late: the others wait {seconds(lost)} for it",
        explanation=(
            f"{late} came last to {last} of {meetings.meetings} collectives, and {waiting} waited "
            f"{seconds(lost)} in all, {percent(lost, signals.window_ps)} of the first epoch."
            + (f" {late} spends {seconds(more)} more on {bucket} than the others." if more else "")
        ),
        change=Change(
            f"Look at {late}: "
            + (f"mend its {bucket} first." if more else "its own ledger says what it does longer.")
            + " Give all workers shards of equal size, and nothing that only one of them does "
            "inside the loop.",
            "if worker == 0:\n    write_report(step)  # all others wait for it",
            "if worker == 0 and step % 1000 == 0:\n    write_report(step)",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.85,
        evidence=signals.evidence_of("communication.collective", "collective of all hosts"),
    )


def _what_it_does_more(late: str, hosts: Sequence[HostLedger]) -> tuple[str, int]:
    """The bucket in which the late host spends most beyond the average of the others."""
    mine = [bucket_totals(host.ledger) for host in hosts if host.host == late]
    others = [bucket_totals(host.ledger) for host in hosts if host.host != late]
    if not mine or not others:
        return "", 0
    beyond = {
        bucket: ps - sum(other[bucket] for other in others) // len(others)
        for bucket, ps in mine[0].items()
        if bucket not in ("communication", "unknown", "profiler")
    }
    worst = max(beyond, key=lambda bucket: beyond[bucket])
    return worst, max(beyond[worst], 0)
