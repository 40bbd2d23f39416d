"""A GPU was in use, but the trace does not show it.

What it finds
A device that was in use, according to the host, but has no events in the trace.

Why it stalls
It does not. But the device's time is unknown, so waiting for the device cannot be distinguished
from computing on it.

How it is measured
Allocations on the device, or the thread that monitors it, in a trace whose device plane is empty.

Example
GPU_0_bfc allocated 3 GB, but /device:GPU:0 had no events: for 61% of the epoch there was no
evidence.

What to do
Let the profiler use CUPTI: put its libraries on the library path, and allow the profiler to read
the GPU's counters.

Blind spots
Other reasons for an empty plane (such as another profiler already attached) look the same.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed
from stall_analyzer.signals.signals import Signals

ID = "ST406"
BUCKET = "unknown"


def check(signals: Signals) -> Finding | None:
    devices = signals.devices
    if not devices.listed or not devices.used or devices.at_work:
        return None
    unknown = signals.causes_ps["unknown.no_evidence"]
    was = "was" if len(devices.listed) == 1 else "were"
    return Finding(
        severity="note",
        title="The GPU was used but not traced",
        explanation=(
            f"According to the host, {listed(devices.listed)} {was} in use, but no event in the "
            "trace is from a GPU: most likely, the profiler could not reach CUPTI."
            + (f" That leaves {signals.with_share(unknown)} unexplained." if unknown else "")
        ),
        change=Change(
            "Put CUPTI on the library path and allow profiling (as root, or with "
            "NVreg_RestrictProfilingToAdminUsers=0 for the driver; in a container, with "
            "--cap-add=SYS_ADMIN). Then capture again.",
            "",
            "export LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH",
        ),
        confidence=0.9,
    )
