"""A map over individual elements spends most of its time on the overhead of calling its function.

What it finds
A map of cheap native ops that runs once for each element of a batch and holds up the step.

Why it stalls
Each function call costs tf.data tens of microseconds. If the function only does a few additions per
element, the call itself is nearly all of the cost, and it is paid once per row instead of once per
batch.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage is a map that takes less than 100 µs an element, with many elements in each
batch.

Example
`ds.map(scale).batch(1024)`: 1,024 calls of 40 µs add up to 41 ms; `ds.batch(1024).map(scale)` takes
1 ms.

What to do
Batch first and map whole batches; most functions handle a leading batch dimension without changes.
For a filter, test whole batches in a map and keep the rows that pass, or filter once and store the
result.

Blind spots
Functions that need one element at a time (decoding, random crops) cannot be reordered this way.
"""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.detectors.input.stage_code import (
    PARALLEL,
    batch_call_around,
    call_of,
    is_filter,
    is_scan,
)
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.input.culprit import (
    TINY_ELEMENTS,
    elements_into,
    elements_per_batch,
)
from stall_analyzer.signals.input.input_pipeline import PipelineSignals, Stage
from stall_analyzer.signals.signals import Signals

ID = "ST015"
BUCKET = "input"

# One call instead of one per element; the ops themselves remain.
LEAST_TIMES = 2
MOST_TIMES = 50


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, TINY_ELEMENTS)
    if blamed is None:
        return None
    stage, pipeline = blamed.stage, signals.pipeline
    elements = elements_per_batch(pipeline, stage)
    each = round(blamed.culprit.per_batch_ps / elements)
    does = "tests" if is_filter(stage) else "maps"
    finding = blamed.finding(
        title=f"{stage.label} {does} {elements:,.0f} elements a batch, one by one",
        explanation=(
            f"{blamed.opening(stage.label)}. It takes {seconds(each)} an element, which is "
            f"about what the function call alone takes; {_how_many(pipeline, stage, elements)}."
        ),
        change=_change(pipeline, stage),
        gain=blamed.if_faster(LEAST_TIMES, MOST_TIMES),
        sureness=0.85,
    )
    # Only its author knows whether a test works on many rows at once.
    return replace(finding, severity="consider") if is_filter(stage) else finding


def _how_many(pipeline: PipelineSignals, stage: Stage, elements: float) -> str:
    if not is_filter(stage):
        return f"{elements:,.0f} elements make a batch"
    tested = elements_into(stage, pipeline)
    dropped = max(tested - stage.count, 0)
    share = f"{percent(dropped, tested)} of them are" if dropped else "none of them is"
    return f"{elements:,.0f} are tested for each batch, and {share} dropped"


def _change(pipeline: PipelineSignals, stage: Stage) -> Change:
    batch = batch_call_around(pipeline, stage)
    before = f"ds.{call_of(stage)}.{batch}  # {stage.label}"
    if is_filter(stage):
        return Change(
            "Test whole batches and keep the rows that pass; or filter the data once, before "
            "training, and store what is left.",
            before,
            "def keep(*columns):\n"
            "    passes = f(*columns)  # for all rows at once\n"
            "    return tuple(tf.boolean_mask(column, passes) for column in columns)\n"
            f"ds.batch(1024).map(keep, {PARALLEL}).unbatch().{batch}",
        )
    if is_scan(stage):
        return Change("Batch first, then scan whole batches.", before, f"ds.{batch}.scan(state, f)")
    return Change("Batch first, then map whole batches.", before, f"ds.{batch}.map(f)")
