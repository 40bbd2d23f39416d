"""Ops run on fewer cores than there are, because the thread pool was made small.

What it finds
Long matrix products and convolutions whose thread pool has at most half as many threads as the
machine has cores.

Why it stalls
TensorFlow spreads a large op over the threads of its intra-op pool. With
`set_intra_op_parallelism_threads(1)`, or an environment variable left over from elsewhere, the
other cores stand idle during each op.

How it is measured
Threads of the intra-op pool that showed themselves in the trace, against the cores that tf.data
counted. The loss is what is missing to all cores being busy for as long as the ops took.

Example
One thread on a machine of two cores: the products of a step took 1.4 times as long.

What to do
Leave the setting out, or set it to 0 (the default: as many threads as cores).

Blind spots
A pool that is small on purpose, because other jobs share the machine, looks the same. The number of
cores is known only where tf.data wrote it down.
"""

from __future__ import annotations

from stall_analyzer.detectors.base import severity_of
from stall_analyzer.format import percent, seconds
from stall_analyzer.model import Change, Finding
from stall_analyzer.signals import Signals
from stall_analyzer.whatif import every_epoch, partly

ID = "ST407"
NAME = "thread_settings"
BUCKET = "compute"

# More threads help products and convolutions; a run of other ops may leave the pool asleep.
MATRIX_SHARE = 0.5
# A pool is small when it has at most half of the cores: one thread may have had nothing to do.
SMALL_POOL = 0.5
# Spreading an op never fills all cores.
LEAST_WON, MOST_WON = 0.5, 1.0


def check(signals: Signals) -> Finding | None:
    ops = signals.ops
    threads, cores = ops.intra_op_threads, ops.cores or 0
    if not 0 < threads <= SMALL_POOL * cores or signals.devices.used:
        return None
    if ops.matrix_ps < MATRIX_SHARE * ops.op_ps:
        return None
    computed = signals.causes_ps["compute.step"]
    # Each op kept `threads` cores busy; the same work on all cores takes this long.
    lost = computed - min(ops.op_ps * threads // cores, computed)
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    gain = partly(lost, LEAST_WON, MOST_WON)
    return Finding(
        id=ID,
        name=NAME,
        bucket=BUCKET,
        severity=severity,
        title=f"Ops run on {threads} of {cores} cores",
        explanation=(
            f"The pool that spreads a large op over the cores had {threads} "
            f"thread{'s' if threads > 1 else ''} in this trace, on a machine of {cores} cores, "
            f"while {percent(ops.matrix_ps, ops.op_ps)} of the op time went to matrix products and "
            f"convolutions. On all cores the {seconds(computed)} of computing could take "
            f"{seconds(computed - lost)}."
        ),
        change=Change(
            "Leave the number of threads to TensorFlow. Look for OMP_NUM_THREADS and "
            "TF_NUM_INTRAOP_THREADS in the environment too.",
            f"tf.config.threading.set_intra_op_parallelism_threads({threads})",
            "tf.config.threading.set_intra_op_parallelism_threads(0)  # as many as there are cores",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of("compute.step", "ops on part of the cores"),
    )
