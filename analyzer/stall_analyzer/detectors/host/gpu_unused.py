"""The machine has a GPU, but training did not use it.

What it finds
A device that the profiler lists, with no sign that it did any work: no kernels, no allocations, no
thread that monitors it.

Why it stalls
The model computes on the CPU while the faster device sits idle.

How it is measured
Device planes without events in the trace, and neither an allocator for the device nor an event
manager thread on the host.

Example
/device:GPU:0 was listed, but all 3.1 s of computation ran on the CPU.

What to do
Ask TensorFlow what it sees: tf.config.list_physical_devices("GPU"). An empty list means that the
build has no GPU support or cannot find CUDA, or that the GPU is hidden (CUDA_VISIBLE_DEVICES); look
at TensorFlow's first log lines. Otherwise the program pins its ops to the CPU.

Blind spots
A GPU can be slower than a CPU for very small models. A device that is not one of TensorFlow's own
GPUs may leave none of these signs.
"""

from __future__ import annotations

from stall_analyzer.detectors.severity import ACT_SHARE
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed, percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST405"
BUCKET = "compute"


def check(signals: Signals) -> Finding | None:
    devices = signals.devices
    computed = signals.buckets_ps["compute"]
    if not devices.listed or devices.used or not signals.host.training_thread:
        return None
    # If the CPU computed for little of the traced time, another device would save little.
    if computed < ACT_SHARE * signals.host.covered_ps:
        return None
    names = listed([name.removeprefix("/device:") for name in devices.listed])
    alone = len(devices.listed) == 1
    return Finding(
        severity="consider",
        title=f"{names} {'is available but was' if alone else 'are available but were'} not used",
        explanation=(
            f"The profiler lists {names}, but nothing in the trace shows any work there. The CPU "
            f"computed for {seconds(computed)} ({percent(computed, signals.host.covered_ps)} of "
            f"the traced time). The trace does not show how much faster a device would be."
        ),
        change=Change(
            "Find out why TensorFlow did not put the model on the device.",
            "",
            "# if this list is empty, check the build and the CUDA libraries\n"
            'print(tf.config.list_physical_devices("GPU"))\n'
            "# if it is not, this shows where each op is placed\n"
            "tf.debugging.set_log_device_placement(True)",
        ),
        confidence=0.6,
    )
