"""A parallel map uses all the cores it may and is still slower than the step.

What it finds
A map of native ops, already parallel, that holds up the step.

Why it stalls
The work for a batch, divided by the cores, takes longer than the step. More parallel calls change
nothing when every core is busy.

How it is measured
While the step waits for its batch, the innermost stage of the pipeline that is at work is to blame.
That stage ran in parallel, its functions kept at least half of the cores busy, and neither Python
nor the decoding of images is most of it.

Example
Spectrograms computed from raw audio in `map`: 80 ms a batch on two cores, the step needs 10.

What to do
Do it once instead of in each epoch: `cache()` after the map if nothing random is in it, or store
the result. Move the work into the model, where it runs on the accelerator in batches. Or do less.

Blind spots
In the first epoch a cache saves nothing, stored results save all: hence the wide range.
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

MOST_TIMES = 50  # reading stored results takes next to nothing


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, HEAVY_MAP)
    if blamed is None:
        return None
    label, (cache, turns) = blamed.stage.label, cache_call(signals)
    cores = f" on {signals.pipeline.cores} cores" if signals.pipeline.cores else ""
    return blamed.finding(
        title=f"{label} takes {blamed.per_batch} a batch, in parallel",
        explanation=(
            f"{blamed.opening(label)}. It already runs in parallel{cores}: the work itself is too "
            "much for the step to hide."
        ),
        change=Change(
            f"Do the work once: {cache} after the map if nothing random is in it, or store its "
            "result. Or move it into the model, or make it cheaper.",
            *cached_code(signals.pipeline, blamed.stage, cache),
            turns=turns,
        ),
        gain=Gain(0, blamed.if_faster(1, MOST_TIMES).high_ps),  # a cache saves nothing at first
        sureness=0.7,
        later_gain=removed(blamed.waited_ps),
    )
