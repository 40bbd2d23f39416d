"""A parallel map uses all the cores it can get and is still slower than the step.

What it finds
A map of native ops that already runs in parallel and still holds up the step.

Why it stalls
Even spread over all cores, the work for a batch takes longer than the step. More parallel calls do
not help when every core is busy.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage ran in parallel, its functions kept at least half of the cores busy, and most of
its time was spent neither in Python nor on decoding images.

Example
Spectrograms computed from raw audio in `map`: 80 ms a batch on two cores, while the step needs 10
ms.

What to do
Do the work once instead of in each epoch: put `cache()` after the map if the map contains nothing
random, or store the result. Or move the work into the model, where it runs on the accelerator in
batches. Or do less of it.

Blind spots
In the first epoch a cache saves nothing, while stored results save everything. That is why the
predicted range is so wide.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import removed
from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.detectors.input.cache_place import cache_call
from stall_analyzer.detectors.input.stage_code import cached_code
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.signals.input.culprit import HEAVY_MAP
from stall_analyzer.signals.signals import Signals

ID = "ST016"
BUCKET = "input"

MOST_TIMES = 50  # reading stored results takes almost no time


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, HEAVY_MAP)
    if blamed is None:
        return None
    label, (cache, turns) = blamed.stage.label, cache_call(signals)
    cores = f" on {signals.pipeline.cores} cores" if signals.pipeline.cores else ""
    return blamed.finding(
        title=f"{label} takes {blamed.per_batch} a batch, even in parallel",
        explanation=(
            f"{blamed.opening(label)}. It already runs in parallel{cores}: the work itself takes "
            f"too long to hide behind the step."
        ),
        change=Change(
            f"Do the work once: put {cache} after the map if the map contains nothing random, or "
            f"store its result. Or move the work into the model, or make it cheaper.",
            *cached_code(signals.pipeline, blamed.stage, cache),
            turns=turns,
        ),
        gain=Gain(0, blamed.if_faster(1, MOST_TIMES).high_ps),  # a cache saves nothing at first
        sureness=0.7,
        later_gain=removed(blamed.waited_ps),
    )
