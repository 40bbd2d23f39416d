"""The hosts of a cluster were profiled at different times.

What it finds
Traces of several hosts that have less than half of their time in common.

Why it stalls
It does not. But which host waits for which can only be seen while all of them are recorded.

How it is measured
The part of the window in which the profiler was recording, host by host.

Example
Worker 0 was profiled from 0 to 12 s, worker 1 from 9 to 20 s: only 3 s was recorded on both.

What to do
Profile all hosts at the same time.

Blind spots
A capture profiles each process within that process's own budget, so the windows may differ from
host to host.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.intervals import total
from stall_analyzer.signals.signals import Signals

ID = "ST507"
BUCKET = "unknown"

# With less than half in common, most of what a host does cannot be compared with the others.
ENOUGH_SHARE = 0.5


def check(signals: Signals) -> Finding | None:
    spans = signals.recorded_spans
    if len(spans) < 2:
        return None
    longest = max(total(*span) for span in spans.values())
    common = signals.covered_by_all_ps
    if common >= ENOUGH_SHARE * longest or longest == 0:
        return None
    least = min(spans, key=lambda host: total(*spans[host]))
    every = "both" if len(spans) == 2 else f"all {len(spans)}"
    return Finding(
        severity="note",
        title=f"Only {seconds(common)} was recorded on {every} hosts at the same time"
        if common
        else f"At no time were {every} hosts profiled together",
        explanation=(
            f"The longest profile covers {seconds(longest)} of the window, and the shortest (on "
            f"{least}) covers {seconds(total(*spans[least]))}. {_shows(common)}"
        ),
        change=Change(
            "Profile all hosts at the same time.",
            "",
            'hosts = ["grpc://worker0:6009", "grpc://worker1:6009"]\n'
            'tf.profiler.experimental.client.trace(",".join(hosts), logdir, duration_ms=5000)',
        ),
        confidence=0.95,
    )


def _shows(common: int) -> str:
    if not common:
        return "No moment was profiled on all hosts, so nothing shows which host waits for which."
    return (
        f"All hosts were profiled at the same time for {seconds(common)}; only that part shows "
        f"which host waits for which."
    )
