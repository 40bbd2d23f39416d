"""The device is idle while data is copied back from it.

What it finds
Time in which a GPU or TPU computed nothing because data was being copied from it or within it.

Why it stalls
A copy that does not overlap with computation is a wait. Data is copied back when Python asks for a
value, as `float(loss)` does after every step, or when weights are kept on the host.

How it is measured
Copies on the device's streams, or TPU ops that wait for a copy, while no kernel ran.

Example
Copying the loss after each step held up the device for 1.2 ms of every 21 ms step.

What to do
Fetch values now and then, not in every step. Keep data on the device if it is used there.

Blind spots
Needs a trace of the device. Copies between devices count as copies to the host. Tested only on
simulated traces, not on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST205"
BUCKET = "memory"

CAUSE = "memory.transfer"
# Values that are fetched in one of many steps cost almost nothing; weights must come and go.
LEAST_SAVED, MOST_SAVED = 0.5, 1.0


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps[CAUSE]
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"Copies from the device hold it up for {seconds(lost)}",
        explanation=(
            f"For {signals.with_share(lost)}, the device did nothing but copy data: back to the "
            "host, or within itself. Copies made while kernels run are not counted."
        ),
        change=Change(
            "Fetch values only now and then: each one makes the host wait for the device.",
            "for step, batch in enumerate(data):\n    print(float(train_step(batch)))",
            "for step, batch in enumerate(data):\n"
            "    loss = train_step(batch)\n"
            "    if step % 100 == 0:\n"
            "        print(float(loss))",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of(CAUSE, "copy from the device"),
    )
