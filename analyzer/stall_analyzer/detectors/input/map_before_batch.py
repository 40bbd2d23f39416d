"""A map over single elements spends its time on starting its function.

What it finds
A map of cheap native ops that runs once for each element of a batch, and holds up the step.

Why it stalls
Starting a function takes tf.data tens of microseconds. For a few additions per element that is
nearly all of the time, and it is paid once for each row instead of once for each batch.

How it is measured
While the step waits for its batch, the innermost stage of the pipeline that is at work is to blame.
That stage is a map that takes less than 100 µs an element, with many elements in each batch.

Example
`ds.map(scale).batch(1024)`: 1024 starts of 40 µs are 41 ms; `ds.batch(1024).map(scale)` takes 1 ms.

What to do
Batch first and map whole batches; most functions work on a leading batch dimension as they are.

Blind spots
Functions that need one element at a time (decoding, random crops) cannot be turned round that way.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch
from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.detectors.input.faster_input import faster_stage
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.input.culprit import TINY_ELEMENTS, elements_per_batch
from stall_analyzer.signals.signals import Signals

ID = "ST015"
BUCKET = "input"

# One start instead of one per element; the ops themselves remain.
LEAST_TIMES = 2
MOST_TIMES = 50


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, TINY_ELEMENTS)
    if blamed is None:
        return None
    culprit, severity = blamed.culprit, blamed.severity
    stage = culprit.stage
    elements = elements_per_batch(signals.pipeline, stage)
    each = round(culprit.per_batch_ps / elements)
    gain = faster_stage(signals, culprit, LEAST_TIMES, MOST_TIMES) + blamed.beside
    return Finding(
        severity=severity,
        title=f"{stage.label} maps {elements:.0f} elements a batch, one by one",
        explanation=(
            f"{blamed.opening(stage.label)}. It takes {seconds(each)} an element, which is about "
            f"what starting its function takes, and {elements:.0f} elements make a batch."
            f"{blamed.beside_text}"
        ),
        change=Change(
            text="Batch first, then map whole batches.",
            before=f"ds.map(f).batch(n)  # {stage.label}",
            after="ds.batch(n).map(f)",
        ),
        lost_ps=blamed.lost_ps,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=round(0.85 * culprit.share, 2),
        evidence=signals.evidence_of("input.wait", f"waits for {stage.label}"),
    )
