"""Training waits for its batches, and no profile says which stage is slow.

What it finds
Captured runs that have no profile and whose training thread waits for input.

Why it stalls
Batches are produced more slowly than the step uses them.

How it is measured
The capture times each request for a batch: around `next` in Python, and with two timestamps in the
graph of a compiled step.

Example
200 steps spent 12.6 s of 14.2 s waiting for their batches.

What to do
Prepare batches in parallel while the step runs: `prefetch` and `num_parallel_calls`. If Python
produces them, do more of that work before training or in TensorFlow ops. A profile would name the
slow stage.

Blind spots
Without a profile it is not known which stage of the pipeline is slow.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import counted, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST021"
BUCKET = "input"


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["input.wait"]
    severity = severity_of(signals.share(lost))
    steps = len(signals.training_steps)
    if signals.traces or severity is None or not steps:
        return None
    gain = partly(lost, 0, 1)  # how fast input can get is not known
    return Finding(
        severity=severity,
        title=f"Each step waits {seconds(lost // steps)} for its batch",
        explanation=(
            f"In {counted(steps, 'step')}, the training thread waited {signals.with_share(lost)} "
            f"for input, as timed by the capture. Without a profile, it is not known which stage "
            f"is slow."
        ),
        change=Change(
            "Prepare batches in the background, in parallel.",
            "data = data.map(load).batch(32)",
            "data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)\n"
            "data = data.prefetch(tf.data.AUTOTUNE)",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of("input.wait", "waits for a batch"),
    )
