"""The cache comes before the slow stage instead of after it.

What it finds
A `cache()` in the pipeline, and a slow stage after it that runs again in every epoch.

Why it stalls
A cache keeps the output of the stages before it. Every stage after it runs again for each element
in each epoch.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. One of the stages that this stage reads from is a Cache.

Example
`ds.cache().map(resize)`: the images are cached, but resized in every epoch.

What to do
Move the slow stage before `cache()`, unless its result must differ from epoch to epoch (random
augmentation) or does not fit in memory. Keep `shuffle` after the cache: if `shuffle` came first,
every epoch would have the same order.

Blind spots
The trace does not show whether the slow stage does anything random. Moving the stage does not make
the first epoch faster.
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

# A cached batch still has to be assembled.
LEAST_SAVED = 0.6


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
    where = "in memory" if moved == "cache()" else "on the disk"
    between = [s.kind for s in signals.pipeline.around(cache)]
    shuffle = "shuffle(k)." if any(kind.startswith("Shuffle") for kind in between) else ""
    batch = batch_call_around(signals.pipeline, stage)
    return Finding(
        severity="consider",  # a random map must stay where it is; only its author knows
        title=f"{stage.label} comes after {cache.label} and runs in every epoch",
        explanation=(
            f"The pipeline has a cache, but training waited {signals.with_share(waited)} for "
            f"{stage.label}, which comes after the cache and runs again in each epoch."
        ),
        change=Change(
            f"Move the stage before the cache if its result is the same in each epoch and fits "
            f"{where}. This helps from the second epoch on.",
            before=f"ds.{keep}.{shuffle}{call_of(stage)}.{batch}  # {stage.label}",
            after=f"ds.{parallel_call_of(stage)}.{moved}.{shuffle}{batch}",
            turns=turns,
        ),
        lost_ps=waited,
        later_gain=every_epoch(partly(waited, LEAST_SAVED, 1.0), signals),
        confidence=0.7,
        evidence=signals.evidence_of("input.wait", f"waits for {stage.label}"),
    )
