"""CUDA takes a long time to start before the first step.

What it finds
A long time between the first line of the job's output and the moment when its GPUs were ready, or a
long time spent in the driver's own startup calls.

Why it stalls
The driver creates a context on each GPU, loads libraries from a disk that may be remote, and clears
the memory. On a machine without persistence mode, the driver itself has to be loaded first. This
happens once per process.

How it is measured
The console's timestamps, from its first line to "Created device"; or the driver calls (cuInit,
cuDevicePrimaryCtxRetain) that CUPTI recorded.

Example
The GPUs of the job were ready 41 s after its first line.

What to do
Turn persistence mode on (nvidia-smi -pm 1). Install TensorFlow and CUDA on a local disk. Let the
job see only the GPUs that it uses: CUDA_VISIBLE_DEVICES.

Blind spots
Anything the program does between the two lines, such as reading data, is counted too.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST115"
BUCKET = "compile"

LONG_S = 10  # a healthy start takes two to five seconds
VERY_LONG_S = 60


def check(signals: Signals) -> Finding | None:
    line = signals.console.warnings.get("gpu_device")
    printed = line.seconds if line is not None and line.seconds is not None else 0.0
    called = signals.driver_calls.get("starting", 0) / PS_PER_S
    took = max(printed, called)
    if took < LONG_S:
        return None
    length = seconds(round(took * PS_PER_S))
    if line is not None and printed >= called:
        title, source = f"CUDA was not ready until {length} after the start", quoted(line)
    else:
        title = f"Starting CUDA took {length}"
        source = "That is how long the driver's own startup calls took."
    return Finding(
        severity="consider" if took >= VERY_LONG_S else "note",
        title=title,
        explanation=f"This happens once per process, before the first step. {source}",
        change=Change(
            "Keep the driver loaded, put the libraries on a local disk, and hide the GPUs that "
            "you do not need.",
            "",
            "sudo nvidia-smi -pm 1\nexport CUDA_VISIBLE_DEVICES=0",
        ),
        confidence=0.5,
    )
