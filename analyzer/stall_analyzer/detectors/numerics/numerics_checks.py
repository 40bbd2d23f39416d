"""Checking every tensor for NaN costs time.

What it finds
tf.debugging.enable_check_numerics or tfdbg dumps that were left on: operations that check every
tensor for NaN and infinity.

Why it stalls
A check reads everything that an operation wrote, in each step. Outside a tf.function each check is
a separate eager op, and a fit() with callbacks runs many of those.

How it is measured
The time in which only CheckNumerics and Debug ops of the step ran, compared with the epoch without
its compilation. Building the graph takes two to six times as long with checks, because each op gets
its own check; how much of the build time they took cannot be seen, so the predicted saving is a
wide range.

Example
12 layers with checks: the first epoch takes 42 s instead of 8 s, and a later one 2.0 s instead of
0.8 s.

What to do
Use the checks to find the first NaN, then remove them.

Blind spots
With XLA, the checks leave no events in the trace. A single, very large check that you wrote
yourself is mistaken for checks of every tensor.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly, removed
from stall_analyzer.detectors.severity import CONSIDER_SHARE
from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.signals import Signals

ID = "ST311"
BUCKET = "numerics"


# Measured: graphs with checks took 2 to 6 times as long to build.
BUILDING = ("compile.tracing", "compile.instantiate")
LEAST_OF_BUILDING = 0.4
MOST_OF_BUILDING = 0.85
# Ops with a check between them can be neither fused nor done in place.
MOST_OF_OPS = 0.35
# The tracer adds time to each op, and more than half of the ops are checks.
MOST_OF_TRACING = 0.65


def check(signals: Signals) -> Finding | None:
    checks = signals.causes_ps["numerics.check_ops"]
    working = signals.window_ps - signals.buckets_ps["compile"]
    if not checks or checks < CONSIDER_SHARE * working:
        return None
    building = sum(signals.causes_ps[cause] for cause in BUILDING)
    steps, graphs = removed(checks), partly(building, LEAST_OF_BUILDING, MOST_OF_BUILDING)
    ops = partly(signals.causes_ps["compute.step"], 0, MOST_OF_OPS)
    traced = partly(signals.causes_ps["profiler.tracing"], 0, MOST_OF_TRACING)
    gain = steps + graphs + ops + traced
    up_to, part_of = "", ""
    if building:
        up_to = f", and up to {seconds(graphs.high_ps)} of graph building"
        part_of = f", and a good part of the {seconds(building)} that building the graphs took"
    return Finding(
        severity="consider",  # "act" in this bucket would say that the run learns nothing
        title=(
            f"Checks for NaN take {percent(checks, working)} of the time outside compilation{up_to}"
        ),
        explanation=(
            f"Operations that look for NaN and infinity in every tensor took {seconds(checks)} of "
            f"the first epoch's steps{part_of}. Once the first bad operation is found, they only "
            "cost time."
        ),
        change=Change(
            "Remove the checks, or put them behind a debugging flag.",
            before="tf.debugging.enable_check_numerics()",
            after="if debugging:\n    tf.debugging.enable_check_numerics()",
            turns=(Turn("checks for NaN", "off"),),
        ),
        lost_ps=gain.high_ps,
        blames=("numerics", "compile", "compute", "profiler"),
        gain=gain,
        later_gain=every_epoch(steps, signals),
        confidence=0.8,
        evidence=signals.evidence_of("numerics.check_ops", "check for NaN"),
    )
