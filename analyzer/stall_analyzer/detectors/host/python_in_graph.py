"""A Python function inside the step makes the graph wait for the interpreter.

What it finds
A py_function or numpy_function in the model, the loss or a metric, during which nothing else in the
step ran.

Why it stalls
At each call, execution leaves TensorFlow's threads, acquires the interpreter's lock, converts the
tensors, runs Python on one core and returns. XLA and GPUs cannot run such a function at all.

How it is measured
The time in which PyFunc and EagerPyFunc ops of the step ran while none of its other ops did. Python
in the input pipeline does not count: it runs in parallel with the step.

Example
A loss weighted its examples in a py_function, which took 35 ms of each 41 ms step.

What to do
Write the function with TensorFlow ops or keras.ops. Anything that can be computed before the step
belongs in the input pipeline.

Blind spots
The trace does not show what the Python function does, except where it calls TensorFlow.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import at_pace_of_input, every_epoch, partly, warmer_steps
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST408"
BUCKET = "host"

# The same work in the graph takes some time too.
LEAST_SAVED, MOST_SAVED = 0.7, 1.0


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["host.py_func"]
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    steps = signals.per_step_ps("host.py_func")
    each = int(median(steps[steps > 0])) if (steps > 0).any() else lost
    warmer = warmer_steps(signals)
    gain = at_pace_of_input(signals, partly(lost, LEAST_SAVED, MOST_SAVED) + warmer)
    return Finding(
        severity=severity,
        title=f"A Python function inside the step takes {seconds(each)} of each step",
        explanation=(
            f"The step's graph calls back into Python. It waited {signals.with_share(lost)} for "
            f"that, and no other op of the step ran in the meantime."
        ),
        change=Change(
            "Write the function with TensorFlow ops or keras.ops, or move it into the input "
            "pipeline.",
            "weight = tf.py_function(weigh, [labels, logits], tf.float32)",
            "weight = (1 - keras.ops.max(keras.ops.softmax(logits), axis=-1)) ** 2",
        ),
        lost_ps=lost + warmer.high_ps,
        blames=("host", "compute"),  # steps that are interrupted are slower, too
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.9,
        evidence=signals.evidence_of("host.py_func", "Python inside the step"),
    )
