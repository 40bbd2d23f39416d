"""NCCL takes a long time to connect the GPUs, before the first all-reduce.

What it finds
The time that NCCL's initialization took, according to NCCL itself.

Why it stalls
No process can continue until all have started. NCCL then looks for networks and for the paths
between the GPUs, and loads its kernels. All this happens once, in the first step.

How it is measured
NCCL's line "Init timings" on the console (NCCL 2.21 or newer, with NCCL_DEBUG=INFO).

Example
ncclCommInitRank took 38.2 s for 16 ranks; 35 s of that was spent reaching the others.

What to do
Start the processes together. Name the network interface (NCCL_SOCKET_IFNAME), so that NCCL does not
try interfaces that lead nowhere. In containers, give it shared memory.

Blind spots
Without NCCL_DEBUG=INFO, NCCL does not report this time, and it is counted as part of the first
step.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST514"
BUCKET = "communication"

LONG_S = 10  # on one machine it takes one to three seconds, on many machines up to ten


def check(signals: Signals) -> Finding | None:
    line = signals.console.warnings.get("nccl_start")
    if line is None or line.seconds is None or line.seconds < LONG_S:
        return None
    return Finding(
        severity="consider",
        title=f"NCCL took {seconds(round(line.seconds * PS_PER_S))} to connect the GPUs",
        explanation=f"This happens once, before the first all-reduce. {quoted(line)}",
        change=Change(
            "Start all processes together, and name the network interface that leads to the "
            "others.",
            "",
            "export NCCL_SOCKET_IFNAME=eth0",
        ),
        confidence=0.8,
    )
