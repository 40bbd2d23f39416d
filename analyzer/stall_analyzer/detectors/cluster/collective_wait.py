"""This host waits for the others in every step.

What it finds
Time in collectives (all-reduce and the like), during which the host computes nothing, and which no
other recorded host explains by coming late.

Why it stalls
In synchronous training all replicas meet in each step. The meeting lasts until the slowest has
come, and then as long as the network needs.

How it is measured
Collective ops of the step, while no other op of it ran, less what the host waited for others that
were recorded. Where the same collectives took very different times, the long ones are waits for a
late replica rather than the network.

Example
2.1 s of 2.4 s in CollectiveReduceV2: 53 ms in each of 40 steps, 0.6 ms when the peer was on time.

What to do
Profile the other workers too, in the same seconds: the one that waits least is the one to look at.
If all wait alike it is the network: larger batches per worker, fewer and larger all-reduces.

Blind spots
Without traces of all hosts, a slow peer cannot be told from a slow network.
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
# waited for somebody.
UNEVEN_FACTOR = 3
# Threads and the network need a few milliseconds for a collective, however punctual the others are.
PUNCTUAL_PS = 5 * PS_PER_MS
LEAST_WON, MOST_WON = 0.0, 1.0


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
    gain = partly(lost, LEAST_WON, MOST_WON)
    return Finding(
        severity=_severity(signals, severity, each),
        title=f"This host waits {seconds(each)} a step for the others",
        explanation=(
            f"{signals.with_share(lost)}, passed in collectives while this host had nothing else "
            f"to do. {_why(signals, uneven)}"
        ),
        change=Change(
            "Profile all workers in the same seconds; the one that waits least holds up the "
            "others, and its own ledger says why.",
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
    # Where others were recorded and none is late, what remains has no address.
    return "consider" if signals.lateness.meetings else severity


def _why(signals: Signals, uneven: bool) -> str:
    if signals.lateness.meetings:
        seen, size = len(signals.hosts), signals.cluster.size
        rest = "" if seen >= size else f", or one of the {size - seen} that were not recorded"
        return f"The {seen} hosts that were recorded were all there: the network{rest}."
    if uneven:
        return (
            "Some took far less time than others, so the long ones are waits for a late worker "
            "rather than the network."
        )
    return "All took about the same: a worker that is always late, or the network."
