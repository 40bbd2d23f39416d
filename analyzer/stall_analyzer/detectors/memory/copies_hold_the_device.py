"""The device stands still while data is copied to or from it.

What it finds
Time in which a GPU or TPU computed nothing because a copy between host and device was going on.

Why it stalls
A copy that is not overlapped with computing is a wait. Copies to the device are mostly batches;
copies back are values that Python asked for, such as `float(loss)` after every step.

How it is measured
Copies on the device's streams while none of its kernels ran.

Example
Float images of 77 MB a batch took 6.4 ms to copy in every step of 21 ms.

What to do
To the device: send smaller numbers (uint8 images, cast on the device) and prefetch onto the device.
Back: ask for values now and then, not in every step.

Blind spots
Needs a trace of the device. Copies between devices count as copies back.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST205"
BUCKET = "memory"

TO_DEVICE, FROM_DEVICE = "input.host_to_device_copy", "memory.transfer"
# uint8 instead of float32 is a quarter of the bytes; a copy that is prefetched costs nothing.
LEAST_WON, MOST_WON = 0.5, 1.0


def check(signals: Signals) -> Finding | None:
    to_device, back = signals.causes_ps[TO_DEVICE], signals.causes_ps[FROM_DEVICE]
    lost = to_device + back
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    worst = TO_DEVICE if to_device >= back else FROM_DEVICE
    way = "to the device" if worst == TO_DEVICE else "from the device"
    gain = partly(lost, LEAST_WON, MOST_WON)
    return Finding(
        severity=severity,
        title=f"Copies {way} hold it up for {seconds(signals.causes_ps[worst])}",
        explanation=(
            f"For {signals.with_share(lost)}, the device only copied: {seconds(to_device)} to the "
            f"device and {seconds(back)} back. Copies that go on while kernels run are not counted."
        ),
        change=_change(worst),
        lost_ps=lost,
        blames=("input", "memory"),
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.7,
        evidence=signals.evidence_of(worst, f"copy {way}"),
    )


def _change(worst: str) -> Change:
    if worst == TO_DEVICE:
        return Change(
            "Send fewer bytes, and send them ahead of the step.",
            "data = data.map(lambda x, y: (tf.cast(x, tf.float32) / 255, y))",
            "# uint8 through the pipeline, cast by the first layer on the device\n"
            "model = keras.Sequential([keras.layers.Rescaling(1 / 255), …])\n"
            'data = data.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))',
        )
    return Change(
        "Ask for values now and then: each one makes the host wait for the device.",
        "for step, batch in enumerate(data):\n    print(float(train_step(batch)))",
        "for step, batch in enumerate(data):\n"
        "    loss = train_step(batch)\n"
        "    if step % 100 == 0:\n"
        "        print(float(loss))",
    )
