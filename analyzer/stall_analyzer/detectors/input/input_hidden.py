"""Input works hard in the background and costs nothing: leave it alone.

What it finds
A pipeline that is busy for much of the epoch while training never waits for it.

Why it stalls
It does not. The pipeline looks suspicious in every profile because it is always busy, but making it
faster changes nothing as long as the step takes longer.

How it is measured
Producing a batch takes a good part of the step's time, but waits for input and cores lost to it
together cost too little time to be worth a change.

Example
A batch takes 15 ms to produce and a step 70 ms to compute; training spends 0.1% of its time
waiting.

What to do
Nothing. If the step gets faster (a larger machine, mixed precision), check again: the finding's
title says how long a batch takes to produce, and a step cannot be shorter than that.

Blind spots
On a CPU, native input takes cores from the step. That loss is only estimated; if the estimate is
not small, this finding is not reported.
"""

from __future__ import annotations

from stall_analyzer.detectors.severity import CONSIDER_SHARE
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST012"
BUCKET = "input"

# A pipeline that is less busy than this does not look suspicious.
BUSY_SHARE = 0.2


def check(signals: Signals) -> Finding | None:
    start, end = signals.step_periods()
    if not signals.pipeline.stages or not len(start):
        return None
    produce = signals.produce_ps()
    stalled = signals.share(signals.buckets_ps["input"])
    if signals.share(produce * len(start)) < BUSY_SHARE or stalled >= CONSIDER_SHARE:
        return None
    step = int((end - start).sum()) // len(start)
    return Finding(
        severity="note",
        title=f"Input takes {seconds(produce)} a batch, hidden behind the steps",
        explanation=(
            f"Producing a batch takes {seconds(produce)}, and a step takes {seconds(step)}. "
            f"Batches are produced in the background, so input held up training for only "
            f"{percent(signals.buckets_ps['input'], signals.window_ps)} of the first epoch."
        ),
        change=Change(
            f"Leave it alone. It will matter only if a step gets faster than {seconds(produce)}.",
        ),
        confidence=0.85,
    )
