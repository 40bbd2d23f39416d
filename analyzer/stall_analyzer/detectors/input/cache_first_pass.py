"""The first epoch fills a cache; later epochs read from it.

What it finds
A wait for the stages that feed a `cache()` or `snapshot()`; they run in the first epoch only.

Why it stalls
Each element is produced once, the first time it passes through the cache. Nothing is wrong with
that: the first epoch pays for all the others.

How it is measured
The waits for input while a stage that feeds the cache was running.

Example
`ds.map(load).cache()`: 2.1 s in the first epoch, nothing afterward.

What to do
Nothing, if there are many later epochs. If the program is started often, `cache("file")` keeps the
elements on disk from one run to the next, as `snapshot` does. Speeding up a stage that feeds the
cache shortens only the first epoch.

Blind spots
A cache larger than memory makes everything slow; the trace does not show that.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import partly
from stall_analyzer.detectors.input.faster_input import BESIDE_INPUT, faster_beside_input
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.input.culprit import culprit_of
from stall_analyzer.signals.signals import Signals

ID = "ST006"
BUCKET = "input"

_IN_MEMORY = Change(
    "If you train for many epochs, leave it as it is. For short runs that you start again and "
    "again, keep the cache on disk, or speed up the stage that feeds it.",
    before="ds.map(load).cache()",
    after='ds.map(load).cache("cache_file")',
)
_ON_DISK = Change(
    "Leave it as it is: the cache is kept on disk, and the next run will find it there as long as "
    "the files stay in place. To shorten the first epoch, fill the cache by reading the data once "
    "before training, or speed up the stage that feeds it.",
    before="model.fit(ds)",
    after="for _ in ds:\n    pass  # fills the files\nmodel.fit(ds)",
)


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["input.cache_fill"]
    if severity_of(signals.share(lost)) is None:
        return None
    culprit = culprit_of(signals.pipeline, signals.intervals_of("input.cache_fill"))
    beside = faster_beside_input(signals, in_python=culprit is not None and culprit.is_python)
    other = signals.causes_ps["input.wait"] + signals.causes_ps["input.shuffle_fill"]
    what = f"{culprit.stage.label} ({culprit.reason})" if culprit else "the stages that feed it"
    later = signals.later_epoch_ps
    after = f" Later epochs took about {seconds(later)} each." if later else ""
    return Finding(
        severity="note",  # the cache works as it should, and the cost does not recur
        title=f"Filling the cache took {seconds(lost)}, in the first epoch only",
        explanation=(
            f"Training waited {signals.with_share(lost)} for elements on their way into the "
            f"cache; {what} produced them. From the second epoch on, they are read from the "
            f"cache.{after}"
        ),
        change=_ON_DISK if _is_on_disk(signals) else _IN_MEMORY,
        lost_ps=lost + other,
        # All of it, where an earlier start left a cache on disk: then nothing below it runs.
        gain=partly(lost + other, 0.0, 1.0) + beside,
        confidence=0.9,
        blames=BESIDE_INPUT,
        evidence=signals.evidence_of("input.cache_fill", "fills the cache"),
    )


def _is_on_disk(signals: Signals) -> bool:
    return bool(signals.pipeline.of_kind("FileCache", "Snapshot"))
