"""The device is idle while batches are copied to it.

What it finds
Time in which a GPU computed nothing because data was being copied to it from the host.

Why it stalls
A copy that does not overlap with computation is a wait. A copy from ordinary (pageable) memory is
slower still: the driver copies twice, and the host cannot continue in the meantime.

How it is measured
Copies to the device while none of its kernels ran; CUPTI says whether they came from pinned memory.

Example
Copying a batch of float images (77 MB) took 6.4 ms of every 21 ms step.

What to do
Send smaller data types (uint8 images, cast on the device), and let tf.data prefetch to the device,
which copies from pinned memory while the step runs.

Blind spots
Needs a trace of the device. AMD's profilers do not say whether memory was pinned. Tested only on
simulated traces, not on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST022"
BUCKET = "input"

CAUSE = "input.host_to_device_copy"
# uint8 instead of float32 is a quarter of the bytes; a copy that is prefetched costs nothing.
LEAST_SAVED, MOST_SAVED = 0.5, 1.0


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps[CAUSE]
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"Copies to the device hold it up for {seconds(lost)}",
        explanation=(
            f"For {signals.with_share(lost)}, the device did nothing but receive data."
            f"{_how(signals)} Copies made while kernels run are not counted."
        ),
        change=Change(
            "Send fewer bytes, and send them before the step needs them.",
            "data = data.map(lambda x, y: (tf.cast(x, tf.float32) / 255, y))",
            "# uint8 through the pipeline, cast by the first layer on the device\n"
            "model = keras.Sequential([keras.layers.Rescaling(1 / 255), …])\n"
            'data = data.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))',
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of(CAUSE, "copy to the device"),
    )


def _how(signals: Signals) -> str:
    """How many bytes, and from which kind of memory, where the profiler says so."""
    copies = [one for device in signals.device_activity if (one := device.copies.get("to_device"))]
    moved, took = sum(one.moved_bytes for one in copies), sum(one.ps for one in copies)
    if not moved or not took:
        return ""
    pageable = sum(one.pageable_ps for one in copies)
    of_it = f", {percent(pageable, took)} of the time from pageable memory" if pageable else ""
    return f" In all, it received {moved / 1e6:,.0f} MB at {moved * 1000 / took:,.1f} GB/s{of_it}."
