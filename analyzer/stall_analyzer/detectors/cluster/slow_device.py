"""One of several devices is slower, and all the others wait for it.

What it finds
A GPU that computes for longer in each step than the others on the same host.

Why it stalls
Replicas exchange their gradients after each step. Those that finish early wait in the all-reduce
until the last one arrives.

How it is measured
The time each device spent in kernels, and in collectives while it computed nothing: the slow one
computes longest and waits least.

Example
GPU:3 computes for 48 ms in each step; the others compute for 12 ms and wait 36 ms for it.

What to do
Look at that card: there may be another job on it, its clock may be lower because of heat or power
(nvidia-smi -q -d PERFORMANCE), or its slot may be slower. If the card is a slower model, give it a
smaller share of the batch.

Blind spots
Needs traces of at least two devices of one host. Tested only on simulated traces, not on a real
GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST512"
BUCKET = "communication"

SLOWER = 1.2  # than the others; clocks of identical cards differ by a few percent
LEAST_SAVED, MOST_SAVED = 0.6, 1.0


def check(signals: Signals) -> Finding | None:
    devices = [device for device in signals.device_activity if device.computing_ps]
    steps = len(signals.training_steps)
    if len(devices) < 2 or not steps:
        return None
    slow = max(devices, key=lambda device: device.computing_ps)
    others = [device for device in devices if device is not slow]
    usual = int(median([device.computing_ps for device in others]))
    waited = int(median([device.communicating_ps for device in others]))
    lost = min(slow.computing_ps - usual, waited - slow.communicating_ps)
    lost = min(lost, signals.causes_ps["communication.collective"])
    severity = severity_of(signals.share(max(lost, 0)))
    if severity is None or slow.computing_ps < SLOWER * usual:
        return None
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    rest = "the other device" if len(others) == 1 else "the other devices"
    wait = "waits" if len(others) == 1 else "wait"
    return Finding(
        severity=severity,
        title=f"{slow.name} is slower than {rest}, which {wait} {seconds(lost)} for it",
        explanation=(
            f"{slow.name} computed for {seconds(slow.computing_ps // steps)} per step, {rest} "
            f"for {seconds(usual // steps)}. Waiting for it in collectives cost {rest} "
            f"{signals.with_share(lost)}."
        ),
        change=Change(
            f"Find out why {slow.name} is slow: the reason may be another job, heat, power, the "
            f"slot or the card itself.",
            "",
            "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.75,
        evidence=signals.evidence_of("communication.collective", "waits for the slow device"),
    )
