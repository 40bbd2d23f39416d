"""XLA compiles the training function again for batches of a different shape.

What it finds
A function that XLA compiled again after its first call.

Why it stalls
XLA compiles code for exact shapes. For a batch of another size or length, it compiles from scratch,
and training waits. The most common case is the smaller last batch of an epoch.

How it is measured
The calls in which the ledger shows XLA at work, except the function's first call, and how much
longer than usual they took, not counting tracing and input.

Example
41 batches, the last of 10 rows instead of 64: 0.49 s of compilation in the first call, 0.34 s more
in the last.

What to do
Give XLA one shape: drop_remainder=True for the last batch; for sequences, padded_batch or bucketing
with a few lengths.

Blind spots
TensorFlow 2.15 and 2.16 record no compiler events, so a second compilation of the same graph is not
seen. The shapes themselves are not in the trace.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import listed, seconds
from stall_analyzer.signals.compile.functions import FunctionSignals
from stall_analyzer.signals.signals import Signals

ID = "ST106"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    function = max(signals.functions, key=_lost_ps, default=None)
    if function is None:
        return None
    again, seen = function.recompilations, _lost_ps(function)
    traced = sum(build.made_ps for build in again)  # a new shape is traced before it is compiled
    lost = max(seen, _in_all_ps(signals, function))
    beyond = (
        " Steps outside the profile waited for XLA, too: as timed by the capture, recompiling "
        f"took about {seconds(lost)} in the whole epoch."
        if lost > seen
        else ""
    )
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    last = function.only_last_call(again)
    alone = len(again) == 1
    calls = f"{'call' if alone else 'calls'} {listed([str(build.call + 1) for build in again])}"
    return Finding(
        severity=severity,
        title=(
            "The last batch makes XLA compile again"
            if last
            else f"XLA compiles {function.words} again and again"
            if beyond
            else f"XLA recompiles {function.words} {'once' if alone else f'{len(again)} times'}"
        ),
        explanation=(
            f"XLA recompiled {function.words} in {calls} (of {function.calls}). Recompiling took "
            f"{signals.with_share(seen)}. Compiled code fits only one "
            f"shape{'; the last batch is smaller than the others' if last else ''}. Each new shape "
            f"costs one compilation, and the first epoch pays for all of them.{beyond}"
        ),
        change=_change(last),
        lost_ps=lost + traced,
        gain=Gain(removed(lost).low_ps, lost + traced),
        confidence=0.9,
        evidence=signals.evidence_of("compile.xla", "XLA compiles"),
    )


def _lost_ps(function: FunctionSignals) -> int:
    return sum(function.extra_ps(build) - build.made_ps for build in function.recompilations)


def _in_all_ps(signals: Signals, function: FunctionSignals) -> int:
    """All compilations in the ledger except the first. Where only some steps were profiled, the
    capture timed the others; otherwise it is 0."""
    if signals.books is None or function.calls >= len(signals.training_steps):
        return 0
    again = len(function.recompilations)
    return signals.causes_ps["compile.xla"] * again // (again + 1)


def _change(last: bool) -> Change:
    if last:
        return Change(
            "Drop the smaller last batch, or pad it.",
            "data = data.batch(size)",
            "data = data.batch(size, drop_remainder=True)",
        )
    return Change(
        "Give all batches the same shape, or use only a few shapes.",
        "data = data.padded_batch(size)",
        "data = data.padded_batch(size, padded_shapes=longest, drop_remainder=True)",
    )
