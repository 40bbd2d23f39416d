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

from stall_analyzer.detectors.input.blamed_stage import blamed_stage
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
    label = blamed.stage.label
    elements = elements_per_batch(signals.pipeline, blamed.stage)
    each = round(blamed.culprit.per_batch_ps / elements)
    return blamed.finding(
        title=f"{label} maps {elements:.0f} elements a batch, one by one",
        explanation=(
            f"{blamed.opening(label)}. It takes {seconds(each)} an element, which is about what "
            f"starting its function takes, and {elements:.0f} elements make a batch."
        ),
        change=Change(
            "Batch first, then map whole batches.",
            before=f"ds.map(f).batch(n)  # {label}",
            after="ds.batch(n).map(f)",
        ),
        gain=blamed.if_faster(LEAST_TIMES, MOST_TIMES),
        sureness=0.85,
    )
