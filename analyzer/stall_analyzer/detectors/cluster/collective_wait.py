"""This host waits for the others in every step.

What it finds
Time in collectives (all-reduce and the like) during which the host computes nothing, unless a late
host in the recordings explains it.

Why it stalls
In synchronous training, all replicas wait for each other in each step. The wait lasts until the
slowest has arrived, and then for as long as the network needs.

How it is measured
The time in which collective ops of the step ran while none of its other ops did, minus the time the
host waited for other recorded hosts. If the same collectives took very different times, the long
ones waited for a late replica rather than for the network.

Example
2.1 s of 2.4 s in CollectiveReduceV2: 53 ms in each of 40 steps, but 0.6 ms when the peer was on
time.

What to do
Profile the other workers too, at the same time: the one that waits least is the one to look at. If
all of them wait equally long, the network is the reason: use larger batches per worker, and fewer
and larger all-reduces.

Blind spots
Without traces of all hosts, a slow peer looks the same as a slow network.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import percentile
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals

ID = "ST501"
BUCKET = "communication"

# Sending takes the same time in each step. A step this many times longer than the shortest has
# waited for another worker.
UNEVEN_FACTOR = 3
# Threads and the network need a few milliseconds for a collective, however punctual the others are.
PUNCTUAL_PS = 5 * PS_PER_MS
LEAST_SAVED, MOST_SAVED = 0.0, 1.0


def check(signals: Signals) -> Finding | None:
    whole = signals.causes_ps["communication.collective"]
    late = signals.lateness.waited_ps.get(signals.host.host, 0)
    first = signals.cluster.ended_first
    gone = first.others_waited_ps if first is not None else 0
    lost = max(whole - late - gone, 0)
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    # In the first step hosts wait for each other's tracing, once.
    steps = signals.per_step_ps("communication.collective")[1:]
    steps = steps[steps > 0]
    each = round(float(steps.mean()) * lost / whole) if len(steps) else lost
    shortest = int(percentile(steps, 5)) if len(steps) else lost
    uneven = int(steps.max(initial=0)) > UNEVEN_FACTOR * shortest
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=_severity(signals, severity, each),
        title=f"This host waits {seconds(each)} a step for the others",
        explanation=(
            f"{signals.with_share(lost)} went to collectives while this host had nothing else to "
            f"do. {_why(signals, uneven)}"
        ),
        change=Change(
            "Profile all workers at the same time; the one that waits least holds up the others, "
            "and its own ledger says why.",
            "",
            'hosts = ["grpc://worker0:6009", "grpc://worker1:6009"]\n'
            'tf.profiler.experimental.client.trace(",".join(hosts), logdir, duration_ms=5000)',
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of("communication.collective", "waits for other hosts"),
    )


def _severity(signals: Signals, severity: Severity, each_ps: int) -> Severity:
    if each_ps <= PUNCTUAL_PS:
        return "note"
    # Where others were recorded and none is late, the rest cannot be pinned on any of them.
    return "consider" if signals.lateness.meetings else severity


def _why(signals: Signals, uneven: bool) -> str:
    if signals.lateness.meetings:
        seen, size = len(signals.hosts), signals.cluster.size
        rest = f" or one of the {size - seen} hosts that were not recorded" if size > seen else ""
        rest = " or the host that was not recorded" if size - seen == 1 else rest
        none = "Neither of the 2" if seen == 2 else f"None of the {seen}"
        return f"{none} recorded hosts was late, so the reason is the network{rest}."
    if uneven:
        return (
            "Some collectives took far less time than others, so the long ones waited for a late "
            "worker rather than for the network."
        )
    return (
        "All collectives took about the same time: either one worker is always late, or the "
        "network is slow."
    )
