"""XLA's compilation costs more than an epoch of compiled steps can make up for.

What it finds
A training function compiled by XLA (jit_compile=True) whose compilation took a large part of the
first epoch.

Why it stalls
XLA turns the graph into machine code in the first call. That takes seconds, and only faster steps
can repay it: XLA pays off in a long run and never in a short one.

How it is measured
The ledger's XLA time in the function's first call, compared with the time of the compiled steps.
Nothing in a trace shows how long a step would take without XLA. Suppose that each step would take
twice as long without XLA. Then an epoch with XLA would save as much time as its compiled steps
take, and a compilation ten times that long would pay off after ten epochs.

Example
A dense model of 8 layers took 2.9 s to compile; its 60 steps took 0.3 s. Without XLA the first
epoch took 1.1 s instead of 4.2 s.

What to do
For short runs (tests, hyperparameter searches, debugging), leave XLA off: jit_compile=False. For
long runs, keep it if steps really are faster: compare an epoch with and without it.

Blind spots
TensorFlow 2.15 and 2.16 record no compiler events, so the time is inferred from the first call.
Compilations of individual ops outside the step are not seen.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import removed
from stall_analyzer.detectors.severity import ACT_SHARE, severity_of
from stall_analyzer.model.findings import Change, Finding, Gain, Turn
from stall_analyzer.model.format import counted, seconds
from stall_analyzer.signals.compile.functions import FunctionSignals
from stall_analyzer.signals.signals import Signals

ID = "ST105"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    function = max(signals.functions, key=_compiled_ps, default=None)
    if function is None:
        return None
    lost = _compiled_ps(function)
    # Without XLA a step may take twice as long: then this much of the cost was already repaid.
    repaid = function.usual_call_ps * (function.calls - 1)
    gain = Gain(max(removed(lost).low_ps - repaid, 0), lost)
    epochs = 1 + len(signals.timeline.later_epochs_ps)
    severity = severity_of(signals.share(max(lost - epochs * repaid, 0)), once_ps=lost)
    if severity is None and signals.share(lost) >= ACT_SHARE:
        severity = "note"
    if severity is None:
        return None
    return Finding(
        severity=severity,
        title=f"XLA takes {seconds(lost)} to compile {function.words}",
        explanation=(
            f"Compiling took {signals.with_share(lost)}. "
            f"{_arithmetic(lost, repaid, steps=function.calls - 1)}"
        ),
        change=_change(function),
        lost_ps=lost,
        gain=gain,
        confidence=0.8,
        evidence=signals.evidence_of("compile.xla", "XLA compiles"),
    )


def _compiled_ps(function: FunctionSignals) -> int:
    return function.first.xla_ps if function.first is not None else 0


def _arithmetic(lost: int, repaid: int, steps: int) -> str:
    if repaid == 0:
        return "No step ran afterward, so nothing was repaid."
    after = f"Afterward, {counted(steps, 'compiled step')} took {seconds(repaid)} in all."
    if lost <= repaid:
        return (
            f"{after} If XLA makes a step twice as fast, the first epoch has already repaid the "
            "compilation."
        )
    epochs = -(-lost // repaid)
    return (
        f"{after} Even if XLA made each step twice as fast, it would take {epochs} epochs to "
        "repay the compilation."
    )


def _change(function: FunctionSignals) -> Change:
    text = "Leave XLA off for short runs; for long ones, time an epoch with and without it."
    turns = (Turn("XLA", "off"),)
    if function.is_keras:
        return Change(
            text,
            "model.compile(optimizer, loss, jit_compile=True)",
            "model.compile(optimizer, loss, jit_compile=False)",
            turns,
        )
    return Change(text, "@tf.function(jit_compile=True)", "@tf.function", turns)
