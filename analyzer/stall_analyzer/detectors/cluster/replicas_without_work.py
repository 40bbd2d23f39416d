"""Some of the machine's devices work while others sit idle.

What it finds
A host with several devices, some of which have events while others have none.

Why it stalls
It may not stall at all: one device may be all that the program asked for. But even on a machine
with eight devices, TensorFlow trains on one unless a distribution strategy says otherwise.

How it is measured
Device planes of the trace with and without events.

Example
/device:GPU:0 worked; GPU:1, GPU:2 and GPU:3 had no events.

What to do
Build and compile the model under tf.distribute.MirroredStrategy, and multiply the batch size by the
number of devices.

Blind spots
Devices that other programs are using look idle here, too. So do devices that the profiler was told
to leave out.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed
from stall_analyzer.signals.signals import Signals

ID = "ST503"
BUCKET = "compute"


def check(signals: Signals) -> Finding | None:
    devices = signals.devices
    idle = [name for name in devices.listed if name not in devices.at_work]
    if not devices.at_work or not idle:
        return None
    if devices.replicas > len(devices.at_work):
        return None  # they have work that was not recorded
    count = len(devices.listed)
    return Finding(
        severity="note",
        title=f"{len(idle)} of {count} devices had no work",
        explanation=(
            f"{listed(devices.at_work)} computed; {listed(idle)} had no events. If "
            f"{'it is' if len(idle) == 1 else 'they are'} meant for this run, a distribution "
            f"strategy would split each batch across {'both' if count == 2 else f'all {count}'} "
            f"devices."
        ),
        change=Change(
            "Train on all devices, if they are free.",
            "model = build()\nmodel.compile(…)",
            "with tf.distribute.MirroredStrategy().scope():\n"
            "    model = build()\n"
            "    model.compile(…)\n"
            f"data = data.unbatch().batch(size * {count})",
        ),
        confidence=0.6,
    )
