"""Training runs op by op in Python instead of in a graph.

What it finds
Training in which each op is started from Python: run_eagerly=True, or a custom loop whose step is
not a tf.function.

Why it stalls
Python and the launch of each op take longer than a small op itself. In a graph, TensorFlow launches
the ops on its own, and Python runs once per step.

How it is measured
The time that the training steps spend in eager ops outside their kernels, and in the gaps in Python
before each op. The gap between the last op and the fetch of the next batch belongs to the loop and
its callbacks and does not count. A graph must be traced first, which takes as much time in Python
as up to 25 eager steps; the lower end of the prediction subtracts that time.

Example
A model of 4 dense layers with run_eagerly=True took 8.4 s for 120 steps; without it, 1.2 s
including tracing.

What to do
Remove run_eagerly=True (and tf.config.run_functions_eagerly). Decorate the step of a custom loop
with @tf.function.

Blind spots
In a graph, Python side effects in the step (printing, lists, counters) happen only while it is
traced. A step that needs them must stay eager, or use tf.print and tf.py_function.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import at_pace_of_input, every_epoch, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.host.overhead import Overhead, step_overhead
from stall_analyzer.signals.signals import Signals

ID = "ST108"
BUCKET = "host"

# Tracing records each op with more Python than running it takes: 13 to 24 steps' worth were seen.
TRACING_STEPS_MOST = 25
# A graph has some Python around each call as well.
REMOVED_SHARE = 0.9


def check(signals: Signals) -> Finding | None:
    is_eager = any(aligned.eager for aligned in signals.traces)
    if signals.traces and not is_eager:
        return None
    overhead = step_overhead(signals.host.ledger, signals.training_steps)
    lost = overhead.eager_ps + overhead.inner_gaps_ps
    if signals.causes_ps["input.wait"] > lost:
        return None  # faster steps would only wait longer for their batches
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    per_step = lost // overhead.steps
    gain = Gain(
        max(round(REMOVED_SHARE * lost) - TRACING_STEPS_MOST * per_step, 0),
        lost,  # the first eager step makes its kernels too, which may cost as much as tracing
    )
    gain = at_pace_of_input(signals, gain)
    later = at_pace_of_input(signals, removed(lost, surely=REMOVED_SHARE))
    return Finding(
        # An epoch too short to pay for tracing may still be part of a long training: only suggest
        # it.
        severity=severity if gain.low_ps else "consider",
        title=f"Training runs op by op: Python takes {seconds(per_step)} of each step",
        explanation=_explanation(signals, overhead, lost),
        change=_change(signals),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(later, signals),
        confidence=0.9,
        evidence=signals.evidence_of("host.eager", "starting an op from Python"),
    )


def _explanation(signals: Signals, overhead: Overhead, lost: int) -> str:
    kernels = signals.causes_ps["compute.eager_op"]
    return (
        f"In {overhead.steps} steps, running Python and launching the ops took "
        f"{signals.with_share(lost)}; the ops themselves computed for {seconds(kernels)}. A graph "
        "runs the same ops without Python between them. It has to be traced once; the predicted "
        "saving allows for that."
    )


def _change(signals: Signals) -> Change:
    if signals.keras is not None and signals.keras.run_eagerly:
        return Change(
            "Turn run_eagerly off; it is meant for debugging.",
            "model.compile(optimizer, loss, run_eagerly=True)",
            "model.compile(optimizer, loss)",
        )
    return Change(
        "Make the training step a tf.function (and do not call "
        "tf.config.run_functions_eagerly(True)).",
        "def train_step(x, y): ...",
        "@tf.function\ndef train_step(x, y): ...",
    )
