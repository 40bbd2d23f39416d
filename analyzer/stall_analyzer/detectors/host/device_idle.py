"""The accelerator is idle most of the time.

What it finds
A GPU or TPU that is idle for at least half of the traced time, mostly because of the host's own
work (Python and launching ops). The finding lists all the reasons for the idle time.

Why it stalls
The device is the fastest and most expensive part of the machine. While it has nothing to do,
training runs at the speed of whatever the device is waiting for.

How it is measured
The time in the traced part of the epoch in which no device was running a kernel, a collective or a
copy, broken down by what the training thread was doing: waiting for a batch, running Python,
launching ops, compiling, waiting for memory.

Example
GPU:0 was at work for 23% of the epoch; it was idle for 31 s because of Python and 4 s because of
input.

What to do
Start with the largest reason: prepare input ahead of time, run less Python between steps
(steps_per_execution), or use fewer and larger ops.

Blind spots
Needs a trace of the device. If Python is not a main reason, other findings name what the device
waits for. Tested only on simulated traces, not on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed, percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST414"
BUCKET = "host"

IDLE_SHARE = 0.5
LARGEST_SHARE = 0.5  # of the idle time: from here on, the host's own work is the reason to name
AT_WORK = frozenset({"compute.device", "communication.collective", "memory.transfer",
                     "input.host_to_device_copy"})  # fmt: skip
REASONS = {
    "input": "waiting for input", "host": "Python and op launches", "compile": "compiling",
    "memory": "waiting for memory", "communication": "waiting for other hosts",
}  # fmt: skip


def check(signals: Signals) -> Finding | None:
    if not signals.device_activity or not signals.host.training_thread:
        return None
    idle: dict[str, int] = {}
    for cause, ps in signals.causes_ps.items():
        if cause not in AT_WORK and bucket_of(cause) in REASONS:
            idle[bucket_of(cause)] = idle.get(bucket_of(cause), 0) + ps
    whole, host = sum(idle.values()), idle.get("host", 0)
    python = signals.causes_ps["host.python"]
    if whole < IDLE_SHARE * signals.host.covered_ps or host < LARGEST_SHARE * whole:
        return None  # another finding names what the device waits for
    severity = severity_of(signals.share(host))
    if severity is None or python < LARGEST_SHARE * host:
        return None
    names = [device.name for device in signals.device_activity]
    reasons = [
        f"{REASONS[bucket]} ({seconds(ps)})"
        for bucket, ps in sorted(idle.items(), key=lambda item: -item[1])
        if ps
    ]
    gain = partly(python, 0.3, 0.9)
    return Finding(
        severity=severity,
        title=f"{listed(names)} {'is' if len(names) == 1 else 'are'} idle for "
        f"{percent(whole, signals.host.covered_ps)} of the time",
        explanation=(
            f"For {seconds(whole)} of the {seconds(signals.host.covered_ps)} that was traced, no "
            f"device was working. The reasons: {listed(reasons, most=len(reasons))}. Python alone "
            f"accounts for {signals.with_share(python)}."
        ),
        change=Change(
            "Train several batches in one call, so that Python runs less often; in callbacks, do "
            "only what each step needs.",
            "model.compile(optimizer, loss)",
            "model.compile(optimizer, loss, steps_per_execution=10)",
        ),
        lost_ps=python,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of("host.python", "the device waits for Python"),
    )
