"""TensorFlow warned that a function is traced again and again.

What it finds
A tf.function that builds a new graph in call after call, in a run of which no trace shows it.

Why it stalls
Each new graph is built, optimized and set up in Python and on the host while no step is made.

How it is measured
TensorFlow's warning on the console of the job. Where a trace shows the retracing, the finding
ST104 has its cost, and this one is not said.

Example
"5 out of the last 5 calls to <function step> triggered tf.function retracing."

What to do
Pass tensors instead of Python numbers, give the function an input_signature, and make it once,
outside of the loop.

Blind spots
The warning comes from the fifth new graph on, and gives no times. It may concern a function beside
the training.
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
        title="A tf.function is traced again in call after call",
        explanation=quoted(warning),
        change=Change(
            "Pass tensors of one shape and type, and make the function once.",
            "for n in range(steps):\n    step(n)",
            "for n in tf.range(steps):\n    step(n)",
        ),
        confidence=0.7,
    )
