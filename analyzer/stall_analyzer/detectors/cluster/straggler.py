"""One worker is late, and the others wait for it.

What it finds
Of several recorded hosts, the one that arrives last at the points where they wait for each other:
in most steps, or so late in a few steps that it matters. Several hosts may take turns being late.

Why it stalls
Synchronous training runs at the pace of its slowest worker.

How it is measured
Each collective is matched across hosts by its group and instance keys or, where it was timed by a
capture instead of a profile, by its step number. A collective ends everywhere at once, so the host
for which it is shortest came last, and the extra time on the others is how long they waited. The
reason is whatever the late host did for longer than the others between one synchronization point
and the next, as its own ledger shows. If a capture ran on the late host, the lines of its own code
that took this time are named. Under ParameterServerStrategy, the coordinator's capture shows when
the coordinator waits for only one worker, and for which one. Clocks inside and around the steps of
that worker show how much longer they take there than on the others, how much of that is spent
waiting for the next batch, and in which line.

Example
worker1 was last at 39 of 40 synchronization points; the others waited 2.0 s for it. Between these
points, it spent 2.0 s more on host (python) than the others did.

What to do
Fix that worker first: its ledger represents the run, and its findings are the run's findings.

Blind spots
Needs traces or captures of at least two hosts from the same time. A host that was not recorded may
be the late one. What a worker does before its trace or its capture begins is not counted. Where one
process has several replicas, the capture cannot time its collectives, so a worker that computes for
longer than the others is not recognized. On a worker of a ParameterServerStrategy, computing and
fetching variables look the same, and so does input that is fetched in a loop inside the step. The
line named is the one that fetches the batch; which part of the worker's dataset is slow is not
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.attribute.booked_time import CAUSES_OF
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.detectors.gains import WARM_SHARE, every_epoch, partly, warmer_steps
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Evidence, Finding, Gain, LateHost
from stall_analyzer.model.format import counted, listed, percent, seconds, spoken
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.booked_costs import costliest
from stall_analyzer.signals.cluster.late_lines import late_lines
from stall_analyzer.signals.cluster.remote_waits import LateWorker, late_remote_worker
from stall_analyzer.signals.ledger_signals import EVIDENCE_MOST
from stall_analyzer.signals.signals import Signals

ID = "ST502"
BUCKET = "communication"

# A line, callback or function that took less than this share of the delay is not named.
MOST_OF_IT = 0.5
# Once it is on time, the next slowest sets the pace.
LEAST_SAVED, MOST_SAVED = 0.6, 1.0

ADVICE: Mapping[Bucket | None, tuple[str, str, str]] = {
    "input": (
        "Fix the input of {host}: give every worker a shard of the same size, on a disk of the "
        "same speed, and the same number of cores to read it with.",
        "data = data.take(per_worker[worker])",
        "data = data.shard(workers, worker).take(smallest_shard)",
    ),
    "compile": (
        "Make sure that {host} does not trace more often than the others: use the same shapes on "
        "all workers, and drop or pad a smaller last batch.",
        "data = data.batch(size)",
        "data = data.batch(size, drop_remainder=True)",
    ),
    "memory": ("Give {host} as much memory as the others, or give all of them smaller batches.",
               "", ""),
    "host": (
        "Make the loop on {host} do the same work as the loops on the others. Work that only one "
        "worker has to do should be rare, or run in a separate thread.",
        "if worker == 0:\n    write_report(step)  # all others wait for it",
        "if worker == 0 and step % 1000 == 0:\n    write_report(step)",
    ),
    "compute": (
        "{host} computes for longer than the others: look for a slower machine, another program on "
        "it, or a larger share of each batch.",
        "",
        "",
    ),
}  # fmt: skip
# For a server, which runs no Python of its own.
CHECK: Mapping[Bucket | None, str] = {
    "input": "Look at what {host} reads its input from, and at what else runs on that machine: all "
    "workers prepare their batches with the same code. If the pipeline does not prefetch, add "
    "prefetch(): batches are then prepared while a step computes.",
    "compute": "Look for a slower machine or network, or another program that runs on {host}: all "
    "workers run the same steps.",
    None: "{host}'s machine or its input may be slower, or another program may be running on that "
    "machine.",
}
NO_ADVICE = (
    "Look at {host} itself: profile it while it trains, and check for a slower machine or network, "
    "or another program that runs on it.",
    "",
    "",
)


def check(signals: Signals) -> Finding | None:
    late = signals.stragglers
    if not late:
        return _of_a_coordinator(signals)
    lost = min(sum(host.cost_ps for host in late), signals.window_ps)
    once = all(host.once for host in late)
    severity = severity_of(lost / signals.covered_by_all_ps, lost if once else None)
    if severity is None:
        return None
    warmer = Gain() if once else _warmer(signals)
    gain = partly(lost, LEAST_SAVED, MOST_SAVED) + warmer
    text, before, after = ADVICE.get(late[0].reason.bucket, NO_ADVICE)
    return Finding(
        severity=severity,
        title=_title(late, lost, once),
        explanation=" ".join(_told(host, signals) for host in late),
        change=Change(text.format(host=late[0].host), before, after),
        lost_ps=lost + warmer.high_ps,
        blames=_blames(late),
        gain=gain,
        later_gain=Gain() if once else every_epoch(gain, signals),
        confidence=0.85 if late[0].reason.bucket else 0.7,
        evidence=_evidence(late, signals),
    )


def _of_a_coordinator(signals: Signals) -> Finding | None:
    late = late_remote_worker(signals)
    severity = severity_of(signals.share(late.cost_ps)) if late is not None else None
    if late is None or severity is None:
        return None
    gain = partly(late.cost_ps, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"{late.name} is late: the others wait {seconds(late.cost_ps)} for it",
        explanation=(
            f"For {signals.with_share(late.cost_ps)}, in {counted(late.waits, 'wait')}, the "
            f"coordinator waited while {late.name} was the only process that still had a step to "
            f"run. {_why(late)}"
        ),
        change=Change(
            f"{CHECK.get(late.bucket, CHECK[None]).format(host=late.name)} A profile of "
            f"{late.name}, taken while it trains, shows more.",
            "",
            "tf.profiler.experimental.client.trace(\n"
            f'    "grpc://{_address_of(late.name, signals)}", logdir, duration_ms=5000)',
        ),
        lost_ps=late.cost_ps,
        blames=("communication", "unknown"),
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.8 if late.bucket else 0.7,
        by_clocks=True,
    )


def _why(late: LateWorker) -> str:
    if late.bucket is None:
        return (
            "What it did was not recorded: computing, reading input and fetching variables look "
            "the same from the coordinator."
        )
    each = f"On average, its steps took {seconds(late.longer_ps)} longer than those of the others"
    if late.bucket == "input":
        line = next(iter(late.lines), None)
        where = f" ({Frame(line.path, line.line, line.function).place})" if line else ""
        waited = seconds(late.longer_input_ps)
        return f"{each}; for {waited} of that, it waited for its next batch{where}."
    if late.longer_input_ps:
        waited = seconds(late.longer_input_ps)
        return f"{each}, and only {waited} of that was spent waiting for a batch."
    return f"{each}, but it did not wait longer for its batches."


def _address_of(worker: str, signals: Signals) -> str:
    """Servers of TensorFlow can be profiled at the address where they get their steps."""
    cluster = (signals.capture.environment.cluster if signals.capture is not None else None) or {}
    addresses = dict(enumerate(cluster.get("worker", ())))
    return addresses.get(int(worker.rpartition(" ")[2]), "worker:2222")


def _blames(late: Sequence[LateHost]) -> tuple[Bucket, ...]:
    """What the late ones did shows in their own ledgers, and as a wait in those of the others."""
    reasons = [host.reason.bucket for host in late if host.reason.bucket]
    return tuple(dict.fromkeys(("communication", "host", "compute", *reasons)))


def _warmer(signals: Signals) -> Gain:
    """Saved by steps that nothing holds up, and by the exchange after them: both start warmer."""
    waited = signals.lateness.waited_ps.get(signals.host.host, 0)
    exchange = max(signals.causes_ps["communication.collective"] - waited, 0)
    return warmer_steps(signals) + partly(exchange, 0, WARM_SHARE)


def _title(late: Sequence[LateHost], lost: int, once: bool) -> str:
    names = listed([host.host for host in late])
    if len(late) > 1:
        return f"{names} take turns being late: the others wait {seconds(lost)} for them"
    if once:
        return f"{names} was late once: the others waited {seconds(lost)} for it"
    return f"{names} is late: the others wait {seconds(lost)} for it"


def _told(late: LateHost, signals: Signals) -> str:
    reason = late.reason
    waited = f"each of the others waited {seconds(late.cost_ps)} for it on average"
    if len(signals.lateness.waited_ps) == 2:
        waited = f"the other host waited {seconds(late.cost_ps)} for it"
    said = (
        f"{late.host} was last at {late.times} of "
        f"{counted(signals.lateness.meetings, 'synchronization point')} and held up "
        f"{counted(late.late_steps, 'step')}; in total, {waited} "
        f"({percent(late.cost_ps, signals.covered_by_all_ps)} of the time that was recorded on "
        f"all hosts)."
    )
    if not reason.bucket:
        return f"{said} Its own ledger does not show what took longer there."
    return (
        f"{said} Between these points, it spent {seconds(reason.ps)} more on {reason.bucket} "
        f"({spoken(reason.cause)}) than the others did.{_in_what(late, signals)}"
    )


def _in_what(late: LateHost, signals: Signals) -> str:
    """What took most of the delay, where samples or books tell: a line, or else a callback or
    function."""
    line = next(iter(late_lines(late, signals)), None)
    if line is not None and line.ps >= MOST_OF_IT * late.reason.ps:
        place = Frame(line.path, line.line, line.function).place
        return f" Most of it went to {line.name or line.function} ({place})."
    accounts = [account for account, cause in CAUSES_OF.items() if cause == late.reason.cause]
    cost = costliest(signals.on(late.host).booked_costs, *accounts)
    if cost is None or cost.spent_ps < MOST_OF_IT * late.reason.ps:
        return ""
    where = f" ({cost.where})" if cost.where else ""
    return f" Most of it went to {cost.name}{where}."


def _evidence(late: Sequence[LateHost], signals: Signals) -> tuple[Evidence, ...]:
    """The longest waits of the others, in order."""
    threads = {host.host: host.training_thread or "" for host in signals.hosts}
    found = [
        Evidence(host.host, threads.get(host.host, ""), int(start), int(end), "the others wait")
        for host in late
        for start, end in zip(
            np.clip(host.start_ps, 0, signals.window_ps),
            np.clip(host.end_ps, 0, signals.window_ps),
            strict=True,
        )
    ]
    longest = sorted(found, key=lambda piece: piece.start_ps - piece.end_ps)[:EVIDENCE_MOST]
    return tuple(sorted(longest, key=lambda piece: piece.start_ps))
