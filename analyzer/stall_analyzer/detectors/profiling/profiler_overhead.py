"""Logging and profiling took a visible part of the epoch.

What it finds
What measuring the first epoch cost: starting and stopping the profiler inside it, the profiler
while it ran, scalars that were logged for every batch, and the capture's own work. At least a tenth
of the epoch.

Why it stalls
Stopping a profile collects and writes everything it saw, while training waits: about 0.1 s per
megabyte of trace. While it runs, each op of a step takes about a microsecond longer. A scalar per
batch takes a third of a millisecond of the training thread, with the profiler on a half.

How it is measured
The ledger's time for each. Logging: the ops that wrote a scalar which the event files hold as
batch_…, epoch_… or evaluation_…, and the Python around them. The running profiler: the ops of a
step, times what an event takes on this machine by the trace itself. A capture times its own hooks.

Example
2,000 steps of a millisecond took 5.5 s, and 2.7 s without any logging: 1.9 s went to the scalars,
0.5 s to the profiler.

What to do
Nothing, if it is only the measuring: neither the verdict nor the forecast for later epochs
contains it, and runs without it do not pay for it. To pay less, capture with StallCallback, which
logs in a thread of its own and profiles only a part of the epoch; or log by epoch.

Blind spots
The running profiler is an estimate: ops in loops of a graph are not counted, nor eager ops. Caches
that logging cools and threads that fall asleep meanwhile make the next step longer, which nothing
shows. Of a capture, what its ops inside the graph take (about 25 µs a step) and the cores that
saving a profile takes are not counted.
"""

from __future__ import annotations

from stall_analyzer.captures.how_to_capture import CALLBACK_LINES, PROFILER_LINES
from stall_analyzer.model.causes import CAUSES, bucket_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed, percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST409"
BUCKET = "profiler"

# Below a tenth it does not blur what the profile shows.
VISIBLE_SHARE = 0.1
WORDS = {
    "profiler.start": "starting the profiler",
    "profiler.stop": "stopping the profiler",
    "profiler.tracing": "the profiler while it ran",
    "profiler.logging": "scalars that were logged for every batch",
    "profiler.capture": "the capture itself",
}


def check(signals: Signals) -> Finding | None:
    lost = signals.buckets_ps["profiler"]
    if signals.timeline.window.epoch is None or signals.share(lost) < VISIBLE_SHARE:
        return None
    spent = {c: signals.causes_ps[c] for c in CAUSES if bucket_of(c) == "profiler"}
    spent = {c: spent[c] for c in sorted(spent, key=lambda c: -spent[c]) if spent[c]}
    worst = next(iter(spent))
    return Finding(
        severity="note",
        title=f"Logging and profiling took {seconds(lost)} of the epoch",
        explanation=(
            f"Of the first epoch, {percent(lost, signals.window_ps)} went to "
            f"{listed([f'{WORDS[c]} ({seconds(ps)})' for c, ps in spent.items()])}. That is the "
            "price of this measurement and not of your program; shares of the rest are larger "
            "without it."
        ),
        change=_change(worst),
        lost_ps=lost,
        confidence=0.9,
        evidence=signals.evidence_of(worst, WORDS[worst]),
    )


def _change(worst: str) -> Change:
    if worst == "profiler.logging":
        return Change(
            "Log by epoch, or capture with StallCallback, which logs in a thread of its own.",
            'keras.callbacks.TensorBoard("logs/run1", update_freq="batch")',
            CALLBACK_LINES,
        )
    return Change("Start and stop the profiler outside of the epoch.", "", PROFILER_LINES)
