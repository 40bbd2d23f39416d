"""A host of the cluster left no records in this log directory.

What it finds
Workers that left neither a trace nor a record but must exist: the configuration names them
(TF_CONFIG, as recorded by a capture), the others' collectives need them, or the numbering of the
others has a gap.

Why it stalls
Until all workers have joined, none can begin: they wait for the missing one, for an hour if nobody
stops them. If steps ran, all workers did join, and only files are missing. In that case, the host
that holds up the others may be the one without records.

How it is measured
The cluster's tasks are compared with those that wrote event files or traces; it also matters
whether any of them ran a step.

Example
TF_CONFIG names 4 workers; worker 3 left nothing, and the other 3 never ran a step.

What to do
Look at the log of the missing worker, and check whether its scheduler ever started it.

Blind spots
A worker that logs to another folder counts as missing, too.
"""

from __future__ import annotations

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed, seconds
from stall_analyzer.model.patterns import pattern
from stall_analyzer.signals.cluster.remote_waits import is_coordinator
from stall_analyzer.signals.signals import Signals

ID = "ST504"
BUCKET = "communication"

UNNAMED = pattern(r"(\d+) (of|more)\b")


def check(signals: Signals) -> Finding | None:
    cluster = signals.cluster
    absent = (*cluster.missing, *cluster.unreadable)
    if not absent:
        return None
    if is_coordinator(signals):
        return None  # its workers are servers, which write nothing
    if cluster.waits_for_the_missing:
        return _never_joined(signals)
    said = [
        f"According to {cluster.size_source}, {cluster.size} hosts train together."
        if cluster.missing
        else "",
        _cannot_be_read(cluster.unreadable) if cluster.unreadable else "",
        "Steps ran, so all of them had joined; but if a host that was not recorded is late, it "
        "cannot be named.",
    ]
    return Finding(
        severity="note",
        title=f"{_named(absent)} not seen, so it may be the one that holds up the others"
        if _is_one(absent)
        else f"{_named(absent)} not seen, so they may be the ones that hold up the others",
        explanation=" ".join(filter(None, said)),
        change=Change(
            "Have all workers write to one log directory, and profile them at the same time.",
        ),
        confidence=0.8 if cluster.size_source == "TF_CONFIG" else 0.6,
    )


def _never_joined(signals: Signals) -> Finding:
    cluster = signals.cluster
    waited = cluster.others_waited_ps
    alone = _is_one(cluster.missing)
    joined = f"{'has' if alone else 'have'} not joined yet"
    if cluster.in_vain:
        joined = "never joined, so the others could not begin"
    others = len(cluster.members)
    return Finding(
        severity="act" if cluster.in_vain else "note",
        title=f"{listed(cluster.missing)} {joined}",
        explanation=(
            f"According to {cluster.size_source}, there are {cluster.size} workers, but "
            f"{_named(cluster.missing)} never heard from, and the other "
            f"{'worker' if others == 1 else others} ran no step in {seconds(waited)} of records."
        ),
        change=Change(
            f"Start {listed(cluster.missing)}, or take {'it' if alone else 'them'} out of "
            f"TF_CONFIG on all the others. All workers must be able to reach each other's ports.",
            "",
            'os.environ["TF_CONFIG"] = json.dumps(\n'
            '    {"cluster": {"worker": ["host0:2222", "host1:2222"]},\n'
            '     "task": {"type": "worker", "index": 0}})',
        ),
        blames=BUCKETS,
        lost_ps=min(waited, signals.window_ps),
        confidence=0.9,
        fatal=cluster.in_vain,
    )


def _cannot_be_read(hosts: tuple[str, ...]) -> str:
    return f"The {'trace' if len(hosts) == 1 else 'traces'} of {listed(hosts)} cannot be read."


def _named(absent: tuple[str, ...]) -> str:
    return f"{listed(absent)} {'was' if _is_one(absent) else 'were'}"


def _is_one(absent: tuple[str, ...]) -> bool:
    """An entry may stand for several hosts without a name: `2 of 4 hosts`."""
    several = UNNAMED.match(absent[0])
    return len(absent) == 1 and (several is None or several[1] == "1")
