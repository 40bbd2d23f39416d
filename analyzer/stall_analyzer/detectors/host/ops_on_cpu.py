"""Some of the step's ops run on the CPU while the GPU waits for them.

What it finds
Ops that compute on the host in the middle of a step that trains on a device.

Why it stalls
An op that has no GPU kernel, or is pinned to the CPU, fetches its inputs from the device and sends
its result back: two copies and a slower processor, with the device idle in the meantime.

How it is measured
On the host, an op that runs on the device takes only the microseconds needed to launch it. An op
counts if it takes a millisecond or more on the host, in any step after the first, while the device
does nothing.

Example
StringSplit and UniqueV2 ran on the CPU for 8 ms of each 20 ms step.

What to do
Move these ops into the input pipeline, where they run in parallel with the step, or replace them
with ops that have a GPU kernel. tf.debugging.set_log_device_placement(True) shows where each op
runs.

Blind spots
Needs a trace of the device. Short ops on the CPU look the same as launches. Tested only on
simulated traces, not on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST417"
BUCKET = "host"

LEAST_SAVED, MOST_SAVED = 0.3, 0.95
NAMED = 3


def check(signals: Signals) -> Finding | None:
    if not signals.device_activity:
        return None
    spans, kinds = signals.ops_on_cpu
    lost = int(signals.time_of(*spans, "host.dispatch").sum())
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    names = ", ".join(sorted(kinds, key=lambda kind: -kinds[kind])[:NAMED])
    gain = partly(lost, LEAST_SAVED, MOST_SAVED)
    return Finding(
        severity=severity,
        title=f"The device waits {seconds(lost)} for ops on the CPU: {names}",
        explanation=(
            f"Inside the steps, {names} computed on the host for {signals.with_share(lost)} while "
            f"the device had nothing to do."
        ),
        change=Change(
            "Do this work in the background in the input pipeline, or with ops that run on the "
            "device.",
            "def train_step(self, data):\n    x = tf.strings.split(data)",
            "data = data.map(tf.strings.split, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.6,
        evidence=signals.evidence_at(spans[0], spans[1], "op on the CPU"),
    )
