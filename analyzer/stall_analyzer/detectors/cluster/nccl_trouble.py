"""NCCL complained: the GPUs have trouble reaching each other.

What it finds
Warnings and errors of NCCL, which moves gradients between GPUs.

Why it stalls
A collective that one member does not reach never ends: all others wait, mostly without an error.
Where a fast connection cannot be used, NCCL takes a slower one.

How it is measured
NCCL's words on the console of the job.

Example
"NCCL WARN NET/Socket : No usable listening interface found".

What to do
Set NCCL_DEBUG=INFO and read which interface it takes; choose one by NCCL_SOCKET_IFNAME. In a
container give it shared memory (--shm-size=1g, --ipc=host).

Blind spots
Some warnings of NCCL are harmless. What it cost is not on the console.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST509"
BUCKET = "communication"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("nccl")
    if warning is None:
        return None
    return Finding(
        severity="consider",
        title="NCCL, which connects the GPUs, complained",
        explanation=quoted(warning),
        change=Change(
            "Let NCCL say what it is doing, and choose the network interface yourself.",
            "",
            "export NCCL_DEBUG=INFO\nexport NCCL_SOCKET_IFNAME=eth0",
        ),
        confidence=0.6,
    )
