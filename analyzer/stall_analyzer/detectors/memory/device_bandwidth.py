"""The device computes at the speed of its memory, not of its arithmetic units.

What it finds
A TPU or GPU that spends most of its time in ops that move nearly as many bytes as its memory can
deliver.

Why it stalls
Such an op waits for its operands; faster arithmetic would not help it. Typical examples are
element-wise ops on large tensors, normalizations, optimizer updates, and matrix products with a
small batch.

How it is measured
XLA records how many bytes of main memory each op moves. That number divided by the op's time is its
rate; at 60% or more of the peak given in the trace, memory sets the pace (as in a roofline model).

Example
A fused addition on a TPU v6 moved 1,341 GB a second, with a peak of 1,638 GB a second: with half
the bytes per element it would take half the time.

What to do
Move fewer bytes: bfloat16 or float16 halves them. A larger batch makes more use of each weight that
is fetched; jit_compile=True fuses element-wise ops so that intermediate results are never written.

Blind spots
Needs a trace of the device in which the compiler recorded the traffic: XLA does so on TPUs, but
most GPU traces lack it. A model that consists of such ops is as fast as the device allows, so the
ledger still calls this time compute.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import ACT_SHARE
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import percent, seconds, size
from stall_analyzer.signals.signals import Signals

ID = "ST210"
BUCKET = "memory"

# Every model has some ops like this; from this share on, they set its pace.
BOUND_SHARE = 0.5
# Half the bytes take half the time; a model that already uses bfloat16 saves nothing.
MOST_SAVED = 0.5


def check(signals: Signals) -> Finding | None:
    roof = signals.roofline
    lost = int(signals.time_of(*roof.bound_spans, "compute.device").sum())
    if roof.bound_share < BOUND_SHARE or signals.share(lost) < ACT_SHARE:
        return None
    gain = partly(lost, 0.0, MOST_SAVED)
    return Finding(
        severity="consider",
        title=f"{roof.device} waits for its memory for {percent(lost, signals.window_ps)} of the "
        f"window",
        explanation=(
            f"{percent(roof.bound_ps, roof.busy_ps)} of its op time ({seconds(roof.bound_ps)}) "
            f"went to ops that move {size(round(roof.bytes_per_s))} a second; its memory can "
            f"deliver {size(round(roof.peak_bytes_per_s))}. The kinds of op that took longest: "
            f"{', '.join(roof.costliest)}."
        ),
        change=Change(
            "Move fewer bytes: lower precision, ops fused by XLA, or a larger batch for the same "
            "weights.",
            "model.compile(optimizer, loss)",
            'keras.mixed_precision.set_global_policy("mixed_bfloat16")\n'
            "model.compile(optimizer, loss, jit_compile=True)",
            turns=(Turn("precision", "down"), Turn("XLA", "on"), Turn("batch size", "up")),
        ),
        lost_ps=lost,
        blames=("compute",),  # as the ledger calls it
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.6,
        evidence=signals.evidence_at(*roof.bound_spans, "ops limited by memory bandwidth"),
    )
