"""The container's CPU limit keeps the process from running.

What it finds
Training whose threads are stopped again and again because the container has used up its share of
the cores (`docker --cpus`, `limits.cpu` in Kubernetes).

Why it stalls
The limit applies to each tenth of a second. TensorFlow sees all cores of the machine and starts a
thread for each; together they use up the share in a few milliseconds, and then all of them stop
until the next tenth of a second, whatever they were doing.

How it is measured
In a capture: the kernel's count of how long the container's threads were throttled. That time is
summed over the cores, so dividing it by their number gives the minimum time that the epoch must
have lost.

Example
A limit of 2 CPUs on a 32-core machine: 64 threads used up the share of each tenth of a second in 6
ms, and nothing ran for 41 s of the first epoch's 90 s.

What to do
Raise the limit, or use no more threads than the cores that it allows: a few threads that are never
stopped are faster than many that are.

Blind spots
A trace does not show the throttling: there, it looks as if the ops of throttled threads were slow.
Where training waits for a GPU, throttled threads may cost nothing.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST410"
BUCKET = "host"

# The work remains: without the limit more cores share it, within the limit fewer threads do.
LEAST_SAVED, MOST_SAVED = 0.2, 1.0


def check(signals: Signals) -> Finding | None:
    machine = signals.machine
    if machine is None or not machine.throttled_ps:
        return None
    cores = max(machine.cores or 1, 1)
    lost = min(machine.throttled_ps // cores, signals.window_ps)
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"The CPU limit stopped the process for {seconds(lost)} of the first epoch",
        explanation=(
            f"Threads of the container were throttled for {seconds(machine.throttled_ps)}, summed "
            f"over {cores} {'core' if cores == 1 else 'cores'}. So for at least "
            f"{signals.with_share(lost)}, none of them could run. That lost time does not show up "
            "on its own: it makes everything else in the epoch look slower."
        ),
        change=Change(
            "Raise the container's CPU limit, or give TensorFlow no more threads than the cores "
            "that the limit allows.",
            "docker run --cpus 2 …",
            "tf.config.threading.set_intra_op_parallelism_threads(2)\n"
            "tf.config.threading.set_inter_op_parallelism_threads(2)",
            turns=(Turn("threads", "as many as the limit allows"),),
        ),
        lost_ps=lost,
        blames=BUCKETS,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.85,
    )
