"""The cache comes before the stage that takes the time.

What it finds
A `cache()` in the pipeline, and a slow stage behind it that runs again in every epoch.

Why it stalls
A cache keeps what comes into it. What is done afterwards is done for each element, each epoch.

How it is measured
While the step waits for its batch, the innermost stage of the pipeline that is at work is to blame;
a Cache stage is among those that it reads from.

Example
`ds.cache().map(resize)`: the pictures are kept, and resized in every epoch.

What to do
Move the slow stage in front of `cache()`, unless its result must differ from epoch to epoch (random
augmentation) or does not fit into memory. A `shuffle` stays behind the cache: in front of it, it
would give the same order in each epoch.

Blind spots
Whether the function is random cannot be told from the trace. The first epoch does not get faster.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.input.cache_place import cache_call
from stall_analyzer.detectors.input.stage_code import (
    batch_call_around,
    call_of,
    parallel_call_of,
)
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.input.culprit import is_map
from stall_analyzer.signals.signals import Signals

ID = "ST017"
BUCKET = "input"

# A cached batch still has to be copied together.
LEAST_WON = 0.6


def check(signals: Signals) -> Finding | None:
    culprit = signals.input_culprit
    if culprit is None or not is_map(culprit.stage):
        return None
    waited = signals.causes_ps["input.wait"]
    caches = [s for s in signals.pipeline.below(culprit.stage) if "Cache" in s.kind]
    if severity_of(signals.share(waited)) is None or not caches:
        return None
    stage, cache = culprit.stage, caches[0]
    keep = 'cache("cache_file")' if cache.kind.startswith("FileCache") else "cache()"
    moved, turns = (keep, ()) if "file" in keep else cache_call(signals)
    where = "into memory" if moved == "cache()" else "on the disk"
    between = [s.kind for s in signals.pipeline.around(cache)]
    shuffle = "shuffle(k)." if any(kind.startswith("Shuffle") for kind in between) else ""
    batch = batch_call_around(signals.pipeline, stage)
    return Finding(
        severity="consider",  # a random map must stay where it is, and only its author knows
        title=f"{stage.label} comes after {cache.label} and runs in every epoch",
        explanation=(
            f"The pipeline has a cache, but what training waits for ({signals.with_share(waited)}) "
            f"is {stage.label}, which comes after it and is done again in each epoch."
        ),
        change=Change(
            "Move it in front of the cache, if its result is the same in each epoch and fits "
            f"{where}. This helps from the second epoch on.",
            before=f"ds.{keep}.{shuffle}{call_of(stage)}.{batch}  # {stage.label}",
            after=f"ds.{parallel_call_of(stage)}.{moved}.{shuffle}{batch}",
            turns=turns,
        ),
        lost_ps=waited,
        later_gain=every_epoch(partly(waited, LEAST_WON, 1.0), signals),
        confidence=0.7,
        evidence=signals.evidence_of("input.wait", f"waits for {stage.label}"),
    )
