"""The cluster's configuration contradicts itself.

What it finds
The same task twice, workers that disagree about the size of the cluster, a task that is not in the
list, an address listed twice, and localhost in a cluster of several machines.

Why it stalls
Workers wait for a member that cannot exist, or talk to themselves.

How it is measured
From the TF_CONFIG of each process, as recorded by its capture, and from the machines that the
processes ran on.

Example
node-a (process 812) and node-b (process 790) both say that they are worker 0.

What to do
Give all workers the same list of addresses, and each worker its own index.

Blind spots
Needs captures of the workers in one log directory. Traces do not contain the configuration.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST508"
BUCKET = "communication"


def check(signals: Signals) -> Finding | None:
    cluster = signals.cluster
    if not cluster.faults:
        return None
    first, *more = cluster.faults
    trained = any(member.steps or member.traced for member in cluster.members)
    return Finding(
        severity="consider" if trained else "act",
        title=first.what,
        explanation=" ".join([first.why, *(f"{fault.what}. {fault.why}" for fault in more)]),
        change=Change(
            "Give all workers the same list of addresses in the same order, and each worker its "
            "own index.",
            "",
            'os.environ["TF_CONFIG"] = json.dumps(\n'
            '    {"cluster": {"worker": ["node-a:2222", "node-b:2222"]},\n'
            '     "task": {"type": "worker", "index": int(os.environ["SLURM_PROCID"])}})',
        ),
        confidence=0.9,
    )
