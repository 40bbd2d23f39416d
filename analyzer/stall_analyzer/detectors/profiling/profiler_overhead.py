"""Logging and profiling took a noticeable part of the epoch.

What it finds
The cost of measuring the first epoch, if it is at least a tenth of the epoch: starting and stopping
the profiler inside it, the profiler while it ran, scalars that were logged for every batch, and the
capture's own work.

Why it stalls
When the profiler is stopped, it collects and writes everything that it recorded, and training waits
for that: about 0.1 s per megabyte of trace. While it runs, each op of a step takes about a
microsecond longer. Logging a scalar per batch takes a third of a millisecond on the training
thread, or half a millisecond with the profiler on.

How it is measured
The ledger's time for each. Logging: the ops that wrote scalars whose tags in the event files begin
with batch_, epoch_ or evaluation_, and the Python around them. The running profiler: the number of
ops in a step times the cost of an event on this machine, which the trace itself shows. A capture
times its own hooks.

Example
2,000 steps of a millisecond each took 5.5 s, but only 2.7 s without any logging: 1.9 s went to the
scalars, 0.5 s to the profiler.

What to do
Nothing, if you logged and profiled only to measure this run: neither the verdict nor the forecast
for later epochs includes this cost, and a run that is not measured does not pay it. To reduce it,
capture with StallCallback, which logs in its own thread and profiles only part of the epoch; or log
once per epoch.

Blind spots
The cost of the running profiler is an estimate: neither ops in graph loops nor eager ops are
counted. Logging also cools caches and lets threads fall asleep, which makes the next step longer
without leaving a trace. For a capture, the time of its ops inside the graph (about 25 µs a step)
and the core time that it takes to save a profile are not counted.
"""

from __future__ import annotations

from stall_analyzer.captures.how_to_capture import CALLBACK_LINES, PROFILER_LINES
from stall_analyzer.model.causes import CAUSES, bucket_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import listed, percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST409"
BUCKET = "profiler"

# Below a tenth it does not distort what the profile shows.
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
            f"cost of this measurement, not of your program; without it, the other shares would "
            f"be larger."
        ),
        change=_change(worst),
        lost_ps=lost,
        confidence=0.9,
        evidence=signals.evidence_of(worst, WORDS[worst]),
    )


def _change(worst: str) -> Change:
    if worst == "profiler.logging":
        return Change(
            "Log once per epoch, or capture with StallCallback, which logs in its own thread.",
            'keras.callbacks.TensorBoard("logs/run1", update_freq="batch")',
            CALLBACK_LINES,
        )
    return Change("Start and stop the profiler outside the epoch.", "", PROFILER_LINES)
