"""The GPU's memory grows piece by piece, and each piece holds up the steps.

What it finds
A GPU for which memory growth is turned on, and how long the driver took to hand out memory in the
traced steps.

Why it stalls
The driver waits until the GPU is idle before it hands out memory. With growth on, the first steps
ask the driver again and again until they have all they need, and the pieces cannot be merged:
memory gets fragmented.

How it is measured
Driver calls that allocate (cuMemAlloc) in the trace, or TensorFlow's message that an environment
variable turned growth on.

Example
cuMemAlloc took 2.1 s in the first steps.

What to do
Allocate the memory all at once: leave growth off, or set a limit
(set_logical_device_configuration). To avoid fragmentation, use TF_GPU_ALLOCATOR=cuda_malloc_async.

Blind spots
If the program itself calls set_memory_growth, no message is printed. If other programs share the
GPU, growth or a limit is needed.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.detectors.gains import partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST213"
BUCKET = "memory"


def check(signals: Signals) -> Finding | None:
    growing = signals.driver_calls.get("growing", 0)
    line = signals.console.warnings.get("memory_growth")
    severity = severity_of(signals.share(growing), once_ps=growing)
    if severity is None and line is None:
        return None
    said = f" {quoted(line)}" if line is not None else ""
    return Finding(
        severity=severity or "note",
        title=f"Asking the driver for memory took {seconds(growing)}"
        if severity
        else "The GPU's memory grows piece by piece",
        explanation=(
            "Each time the GPU's memory grows, the driver first waits until the GPU is idle. This "
            f"happens in the first steps.{said}"
        ),
        change=Change(
            "Allocate all of the memory at once, or a fixed part of it.",
            "tf.config.experimental.set_memory_growth(gpu, True)",
            "limit = tf.config.LogicalDeviceConfiguration(memory_limit=12_000)\n"
            "tf.config.set_logical_device_configuration(gpu, [limit])",
        ),
        lost_ps=growing if severity else 0,
        gain=partly(growing if severity else 0, 0, 0.9),
        confidence=0.6,
    )
