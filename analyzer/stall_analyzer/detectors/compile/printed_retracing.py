"""TensorFlow warned that a function is traced again and again.

What it finds
A tf.function that builds a new graph on call after call, in a run where no trace shows it.

Why it stalls
Each new graph has to be built, optimized and instantiated on the host, and no step runs in the
meantime.

How it is measured
TensorFlow's warning on the job's console. Where a trace shows the retracing, ST104 reports it with
its cost instead.

Example
"5 out of the last 5 calls to <function step> triggered tf.function retracing."

What to do
Pass tensors instead of Python numbers, give the function an input_signature, and create it once,
outside the loop.

Blind spots
The warning first appears at the fifth new graph and gives no times. It may be about a function that
has nothing to do with the training step.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST113"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("retracing")
    if warning is None:
        return None
    return Finding(
        severity="consider",
        title="A tf.function is traced again and again",
        explanation=quoted(warning),
        change=Change(
            "Pass tensors of one shape and type, and create the function once.",
            "for n in range(steps):\n    step(n)",
            "for n in tf.range(steps):\n    step(n)",
        ),
        confidence=0.7,
    )
