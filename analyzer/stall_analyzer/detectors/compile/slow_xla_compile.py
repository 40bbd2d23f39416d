"""XLA itself reported that compiling was very slow.

What it finds
A cluster that XLA compiled for more than some minutes.

Why it stalls
No step is made meanwhile, and without a trace nothing shows that the process works.

How it is measured
XLA's alarm on the console of the job, and the time that it says the operation took.

Example
"Very slow compile? …", then "The operation took 2m15.5s".

What to do
Give XLA less at once: no unrolled loops over layers or time steps, jit_compile on the function
that profits, and not on the whole program. Keep compiled programs between runs.

Blind spots
The alarm comes only after minutes; many shorter compilations say nothing.
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
    took = f" for {seconds(int(warning.seconds * PS_PER_S))}" if warning.seconds else ""
    return Finding(
        severity="consider",
        title=f"XLA compiled{took}, and reported that as very slow itself",
        explanation=quoted(warning),
        change=Change(
            "Give XLA less at once: loops that it need not unroll, and only the function that "
            "profits from it.",
            "model.compile(optimizer, loss, jit_compile=True)",
            "model.compile(optimizer, loss, jit_compile=False)",
        ),
        confidence=0.8,
    )
