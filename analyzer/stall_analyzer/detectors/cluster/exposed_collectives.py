"""Several devices and little speed-up: the exchange of gradients is not hidden behind computing.

What it finds
Time in which the devices of a host only exchanged gradients.

Why it stalls
An all-reduce that runs beside the backward pass costs nothing. One that runs alone adds to every
step, and takes as long however small the batch of each replica is.

How it is measured
Collectives (NCCL, RCCL, all-reduce of XLA) while most devices computed nothing, less what they
waited for a slower one (ST512).

Example
4 GPUs: each step of 42 ms computed for 12 ms and exchanged gradients for 30 ms.

What to do
Give each replica more to compute: multiply the batch by the number of devices. Send less: mixed
precision halves the gradients. Several GPUs without NVLink: let NCCL choose the path
(NCCL_DEBUG=INFO says which it takes).

Blind spots
Needs a trace of the devices. Whether a larger batch trains as well is not known. Checked by
simulation only: there was no GPU to measure on.
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

LEAST_WON, MOST_WON = 0.2, 0.9


def check(signals: Signals) -> Finding | None:
    devices = [device for device in signals.device_activity if device.communicating_ps]
    steps = len(signals.training_steps)
    if len(devices) < 2 or not steps:
        return None
    # Who comes last waits for nobody: its collectives are the exchange alone.
    alone = min(device.communicating_ps for device in devices)
    lost = min(alone, signals.causes_ps["communication.collective"])
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    computing = int(median([device.computing_ps for device in devices]))
    gain = partly(lost, LEAST_WON, MOST_WON)
    return Finding(
        severity=severity,
        title=f"{len(devices)} devices exchange gradients for {seconds(lost // steps)} a step, "
        "and compute nothing meanwhile",
        explanation=(
            f"{signals.with_share(lost)}, went to collectives while the devices had nothing else "
            f"to do; they computed {seconds(computing // steps)} a step. With so little computing "
            "for each exchange, more devices make the training hardly faster."
        ),
        change=Change(
            "Give each device more to compute for each exchange, and send less.",
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
