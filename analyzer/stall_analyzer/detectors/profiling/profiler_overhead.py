"""Starting and stopping the profiler took a visible part of the epoch.

What it finds
Profiles that begin or end inside the first epoch and cost at least a tenth of it.

Why it stalls
Stopping a profile collects and writes everything it saw, while training waits: about 0.1 s per
megabyte of trace.

How it is measured
The ledger's time for starting and stopping the profiler.

Example
Stopping after batch 200 took 3.5 s of a 9 s epoch, for a trace of 30 MB.

What to do
Nothing, if it is only the measuring: runs without a profile do not pay it. For a cheaper profile,
start and stop outside of the epoch or profile fewer batches.

Blind spots
What the profiler costs while it runs (some 2 ms a step for a small model) has no events.
"""

from __future__ import annotations

from stall_analyzer.captures.how_to_capture import PROFILER_LINES
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST409"
BUCKET = "profiler"

# Below a tenth it does not blur what the profile shows.
VISIBLE_SHARE = 0.1


def check(signals: Signals) -> Finding | None:
    lost = signals.buckets_ps["profiler"]
    if signals.timeline.window.epoch is None or signals.share(lost) < VISIBLE_SHARE:
        return None
    worst = max(("profiler.start", "profiler.stop"), key=lambda cause: signals.causes_ps[cause])
    return Finding(
        severity="note",
        title=f"The profiler itself took {seconds(lost)} of the epoch",
        explanation=(
            f"Starting and stopping the profiler took {percent(lost, signals.window_ps)} of the "
            f"first epoch. That is the price of this measurement and not of your program; shares "
            f"of the rest are larger without it."
        ),
        change=Change("Start and stop the profiler outside of the epoch.", "", PROFILER_LINES),
        lost_ps=lost,
        confidence=0.9,
        evidence=signals.evidence_of(worst, "the profiler"),
    )
