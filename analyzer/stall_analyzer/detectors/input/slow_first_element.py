"""The first batch took far longer than the others.

What it finds
A long wait before the first step of an epoch; no later step waits that long.

Why it stalls
Before its first element, a pipeline opens files, lists directories and loads tables; a generator
runs all its code up to its first `yield`.

How it is measured
The wait for the first batch, minus a typical wait, where no shuffle buffer was being filled.

Example
`def read(): data = np.load("all.npz"); yield from data`: two seconds of loading inside the first
step.

What to do
Load what is needed before `fit` (once, not once per iterator), or stream it: memory-mapped arrays,
records, fewer directories to list.

Blind spots
What a generator does before its first `yield` is not visible without the Python tracer. Loading the
data before `fit` shortens the epoch but not the whole run, unless there is less to load.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.input.culprit import GENERATOR, culprit_of
from stall_analyzer.signals.signals import Signals

ID = "ST009"
BUCKET = "input"

# The first batch of any pipeline takes up to a few hundred milliseconds longer than the others.
LEAST_PS = 400 * PS_PER_MS
LEAST_SAVED = 0.5  # streaming still has to read the first part of the data


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["input.first_element"]
    again = signals.comes_again("input.first_element")
    severity = severity_of(signals.share(lost), once_ps=None if again else lost)
    if severity is None or lost < LEAST_PS:
        return None
    culprit = culprit_of(signals.pipeline, signals.intervals_of("input.first_element"))
    gain = partly(lost, LEAST_SAVED, 1.0)
    generator = culprit is not None and culprit.reason == GENERATOR
    where = f", most of that time in {culprit.stage.label}" if culprit else ""
    why = (
        " That is when a generator runs everything before its first yield."
        if generator
        else " That is when files are opened, tables loaded and buffers filled."
    )
    return Finding(
        severity=severity,
        title=f"The first batch took {seconds(lost)} longer than the others",
        explanation=(
            f"The first step waited {signals.with_share(lost)} longer for its batch than "
            f"later steps did{where}.{why} This happens "
            f"{'in each epoch, with each new iterator' if again else 'once'}."
        ),
        change=Change(
            "Load the data once, before fit, or read it piece by piece (memory-mapped arrays, "
            "records) instead of all at once at the start.",
            before='def read():\n    data = np.load("all.npy")\n    yield from data',
            after='data = np.load("all.npy", mmap_mode="r")\ndef read():\n    yield from data',
        )
        if generator
        else Change(
            "Do less before the first element: open fewer files, list fewer directories (or keep "
            "an index of them), or use smaller buffers. Or prepare the iterator before training "
            "starts.",
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals) if again else Gain(),
        confidence=0.75,
        evidence=signals.evidence_of("input.first_element", "waits for the first batch"),
    )
