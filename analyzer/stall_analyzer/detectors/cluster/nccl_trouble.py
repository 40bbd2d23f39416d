"""NCCL complained: the GPUs have trouble reaching each other.

What it finds
Warnings and errors from NCCL, which moves gradients between GPUs.

Why it stalls
A collective that one member never reaches never ends: all the others wait, usually without an
error. Where a fast connection cannot be used, NCCL falls back to a slower one.

How it is measured
NCCL's messages on the job's console.

Example
"NCCL WARN NET/Socket : No usable listening interface found".

What to do
Set NCCL_DEBUG=INFO and see which interface NCCL takes; choose one with NCCL_SOCKET_IFNAME. In a
container, give it shared memory (--shm-size=1g, --ipc=host).

Blind spots
Some of NCCL's warnings are harmless. The console does not show what the trouble cost.
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
            "Have NCCL log what it is doing, and choose the network interface yourself.",
            "",
            "export NCCL_DEBUG=INFO\nexport NCCL_SOCKET_IFNAME=eth0",
        ),
        confidence=0.6,
    )
