"""Several devices but little speedup: the gradient exchange is not hidden behind computation.

What it finds
Time in which the devices of a host did nothing but exchange gradients.

Why it stalls
An all-reduce that overlaps with the backward pass costs nothing. One that runs alone adds its time
to every step, and takes just as long however small the batch per replica is.

How it is measured
Collectives (NCCL, RCCL, XLA's all-reduce) while most devices computed nothing, minus the time they
waited for a slower one (ST512).

Example
On 4 GPUs, each step of 42 ms computed for 12 ms and exchanged gradients for 30 ms.

What to do
Give each replica more to compute: multiply the batch by the number of devices. Send less: mixed
precision halves the gradients. For GPUs without NVLink, check which path NCCL takes
(NCCL_DEBUG=INFO prints it).

Blind spots
Needs a trace of the devices. Whether the model trains as well with a larger batch is not known.
Tested only on simulated traces, not on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST513"
BUCKET = "communication"

LEAST_SAVED, MOST_SAVED = 0.2, 0.9


def check(signals: Signals) -> Finding | None:
    devices = [device for device in signals.device_activity if device.communicating_ps]
    steps = len(signals.training_steps)
    if len(devices) < 2 or not steps:
        return None
    # The last device to arrive waits for no other: its collectives are only the exchange.
    alone = min(device.communicating_ps for device in devices)
    lost = min(alone, signals.causes_ps["communication.collective"])
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    computing = int(median([device.computing_ps for device in devices]))
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"{len(devices)} devices spend {seconds(lost // steps)} of each step only "
        f"exchanging gradients",
        explanation=(
            f"{signals.with_share(lost)} went to collectives while the devices had nothing else "
            f"to do; they computed for {seconds(computing // steps)} per step. With so little to "
            f"compute between exchanges, more devices hardly make the training faster."
        ),
        change=Change(
            "Give each device more to compute between exchanges, and send less.",
            "data = data.batch(64)",
            f"data = data.batch(64 * {len(devices)})\n"
            'keras.mixed_precision.set_global_policy("mixed_float16")',
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of("communication.collective", "gradients are exchanged"),
    )
