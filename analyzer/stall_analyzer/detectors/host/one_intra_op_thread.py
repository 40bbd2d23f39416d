"""Large ops run on one thread, although the machine has more cores.

What it finds
`tf.config.threading.set_intra_op_parallelism_threads(1)` (or `TF_NUM_INTRAOP_THREADS=1`) in a run
where matrix products and convolutions take most of the step.

Why it stalls
TensorFlow splits a large op among its intra-op threads. With only one, the other cores have nothing
to do while the op runs.

How it is measured
Each intra-op thread that did anything has a line in the trace (`…_Eigen`); a capture records the
setting itself. The finding needs one thread, more than one core, and matrix products and
convolutions of a millisecond or more that take a good part of the epoch.

Example
`set_intra_op_parallelism_threads(1)`, copied from a recipe for repeatable results: in each step of
40 ms, a second core has nothing to do.

What to do
Leave the number of threads to TensorFlow, or set it to the number of cores. If the setting is there
for repeatable results, `tf.config.experimental.enable_op_determinism()` gives them while using all
cores.

Blind spots
The cores may be busy with other processes, or may be two hyperthreads of one core, and the trace
shows neither; in both cases, more threads save little. Traces without tf.data do not say how many
cores there are.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST407"
BUCKET = "compute"

# Shares of the time that splitting the ops over all cores would save at best. Two hyperthreads of
# one core save next to nothing.
LEAST_SAVED, MOST_SAVED = 0.0, 1.0
HALVES = 2  # this many cores may well be the two hyperthreads of one


def check(signals: Signals) -> Finding | None:
    pools = signals.pools
    if pools.intra_op_threads != 1 or pools.cores is None or pools.cores < 2:
        return None
    divisible = min(pools.divisible_ps, signals.causes_ps["compute.step"])
    lost = round(divisible * (1 - 1 / pools.cores))
    if severity_of(signals.share(lost)) is None:
        return None
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity="note" if pools.cores <= HALVES else "consider",
        title=f"Large ops run on one thread, on a machine with {pools.cores} cores",
        explanation=(
            f"Matrix products and convolutions took {seconds(divisible)} of the first epoch. "
            f"TensorFlow can split them among {pools.cores} cores, but "
            + (
                "the program has set the number of intra-op threads to 1."
                if pools.is_setting
                else "only one intra-op thread was ever at work, so the number of these threads "
                "must have been set to 1."
            )
        ),
        change=Change(
            "Leave the number of intra-op threads to TensorFlow.",
            before="tf.config.threading.set_intra_op_parallelism_threads(1)",
            after="# no setting; for repeatable results\n"
            "tf.config.experimental.enable_op_determinism()",
            turns=(Turn("threads", "left to TensorFlow"),),
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.85 if pools.is_setting else 0.7,
        evidence=signals.evidence_of("compute.step", "ops on one thread"),
    )
