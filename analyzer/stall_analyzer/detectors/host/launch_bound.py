"""Many tiny kernels: launching them takes longer than running them.

What it finds
A GPU that waits for the host to launch its next kernel, because each one finishes almost at once.

Why it stalls
Launching a kernel costs the host a few microseconds, however little it computes. A step made up of
hundreds of kernels, each shorter than that, runs only as fast as the host can launch them.

How it is measured
The time in which no kernel ran and the executors were launching ops, along with the number of
kernels and their average time on the device.

Example
400 kernels per step at 1.2 µs each: the GPU spent 1.6 ms of each 2.3 ms step waiting for launches.

What to do
Use a larger batch, so that each kernel has more to do. Or run fewer kernels: jit_compile=True fuses
them.

Blind spots
Needs a trace of the device. Tested only on simulated traces, not on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_US
from stall_analyzer.signals.signals import Signals

ID = "ST415"
BUCKET = "host"

# A launch costs the host 3 to 10 µs; kernels that take twice as long do not wait for it.
SHORT_PS = 20 * PS_PER_US
LEAST_KERNELS = 20  # per step: with fewer, the pauses have another reason
LEAST_SAVED, MOST_SAVED = 0.3, 0.95


def check(signals: Signals) -> Finding | None:
    steps = len(signals.training_steps)
    lost = signals.causes_ps["host.dispatch"]
    severity = severity_of(signals.share(lost))
    if severity is None or not steps or not signals.device_activity:
        return None
    kernels = sum(device.count_of("kernel") for device in signals.device_activity)
    computing = sum(device.computing_ps for device in signals.device_activity)
    mean = computing // max(kernels, 1)
    if kernels < LEAST_KERNELS * steps or mean > SHORT_PS:
        return None
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"The device waits {seconds(lost // steps)} a step for tiny kernels to be launched",
        explanation=(
            f"Each step runs {kernels // steps:,} kernels that take {seconds(mean)} on average, "
            f"too short to hide the time that launching them takes. The device had nothing to do "
            f"for {signals.with_share(lost)} while ops were being launched."
        ),
        change=Change(
            "Fuse the kernels with XLA, or use a larger batch, so that each kernel has more to do.",
            "model.compile(optimizer, loss)",
            "model.compile(optimizer, loss, jit_compile=True)",
            turns=(Turn("XLA", "on"),),
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of("host.dispatch", "kernels are launched"),
    )
