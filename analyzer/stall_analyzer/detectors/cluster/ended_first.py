"""One worker ended before the others, and they could not continue without it.

What it finds
The member of a cluster that was killed, failed or left first.

Why it stalls
In synchronous training, no worker can run a step without the others. If the process of a worker
ends, the others notice at once. If its machine disappears, they notice only when its heartbeats
have been absent for a while, and wait until then.

How it is measured
TensorFlow's errors name the peer that they come from; errors spread from worker to worker, and the
first one blames no peer. If there are no errors, the evidence is a capture whose records stop more
than a minute before those of all others, or a trace that ends, after which the others start no more
steps.

Example
Worker 1 was last heard from at 14:02:31, without a final record; all 3 others failed with
UnavailableError 22 s later.

What to do
Check that worker's log and its scheduler's for preemption, eviction or running out of memory.

Blind spots
The others' errors come last and fill every log; the reason is only in the log of the worker that
ended first.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.cluster import EndedFirst
from stall_analyzer.model.findings import Change, Evidence, Finding
from stall_analyzer.model.format import listed, moment, percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST505"
BUCKET = "communication"

TOLD_BUCKETS = 3  # how many buckets to name for the time until then


def check(signals: Signals) -> Finding | None:
    first = signals.cluster.ended_first
    if first is None:
        return None
    window = signals.window_ps
    start = min(max(first.at_ps, 0), window)
    end = min(max(first.at_ps + first.others_waited_ps, 0), window)
    when = f" at {moment(first.at_unix_ns)}" if first.at_unix_ns is not None else ""
    return Finding(
        severity="act",
        title=f"{first.name} ended first{when}; the others could not continue",
        explanation=f"{first.how} {first.others}{_until_then(first, signals)}",
        change=Change(
            f"Look at {first.name} first: its own output and its scheduler's say why it ended "
            "(preemption, eviction, out of memory). Save checkpoints, so that a restart continues "
            "where the training left off.",
            "model.fit(data, epochs=10)",
            'restore = keras.callbacks.BackupAndRestore("gs://…/backup")\n'
            "model.fit(data, epochs=10, callbacks=[restore])",
        ),
        lost_ps=end - start,
        blames=BUCKETS,
        confidence=0.85,
        fatal=True,
        evidence=(Evidence(signals.host.host, "", start, end, f"without {first.name}"),)
        if end > start
        else (),
    )


def _until_then(first: EndedFirst, signals: Signals) -> str:
    """Where the time until then went on that host or, if it was not traced, on the host that
    represents the run."""
    traced = any(host.host == first.name for host in signals.hosts)
    its_own = signals.on(first.name) if traced else signals
    until = min(max(first.at_ps, 0), signals.window_ps)
    if not until:
        return ""
    span = np.array([0]), np.array([until])
    spent = {bucket: its_own.time_of_buckets(span, bucket) for bucket in BUCKETS}
    largest = sorted(spent, key=lambda bucket: -spent[bucket])[:TOLD_BUCKETS]
    parts = [f"{bucket} ({percent(spent[bucket], until)})" for bucket in largest if spent[bucket]]
    before = f"{seconds(until)} before {first.name} ended"
    if largest[0] == "unknown":
        return f" What happened in the {before} is mostly unknown."
    return f" The {before} went to {listed(parts)}."
