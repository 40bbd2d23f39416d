"""XLA itself reported that compiling was very slow.

What it finds
A part of the graph that took XLA several minutes to compile.

Why it stalls
No step runs in the meantime, and without a trace nothing shows that the process is still working.

How it is measured
XLA's slow-compile warning on the job's console, and the time that it gives for the operation.

Example
"Very slow compile? …", then "The operation took 2m15.5s".

What to do
Give XLA less to compile at once: avoid unrolled loops over layers or time steps, and use
jit_compile only on the function that benefits from it. Keep compiled programs between runs.

Blind spots
The warning appears only after minutes; many shorter compilations go unreported.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST112"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("slow_compile")
    if warning is None:
        return None
    took = f" ({seconds(int(warning.seconds * PS_PER_S))})" if warning.seconds else ""
    return Finding(
        severity="consider",
        title=f"XLA warned that its compilation was very slow{took}",
        explanation=quoted(warning),
        change=Change(
            "Give XLA less to compile at once: avoid unrolled loops, and compile only the function "
            "that benefits from it.",
            "model.compile(optimizer, loss, jit_compile=True)",
            "model.compile(optimizer, loss, jit_compile=False)",
        ),
        confidence=0.8,
    )
