"""Variables are created and filled inside the first training step.

What it finds
A first call that spends a noticeable part of the epoch initializing variables: large embeddings or
layers of a model that was not built beforehand, or an optimizer's slots.

Why it stalls
Variables that a tf.function creates are initialized by a separate graph, between two traces of the
function. Filling a big embedding with random numbers can take as long as many steps.

How it is measured
The ledger's time in the initialize_variables graph of the training thread. The repeated tracing
counts too, because the same change avoids it.

Example
An embedding of 400,000 rows was filled in 0.7 s inside the first call of fit(). With the model
built beforehand, the first epoch took 0.8 s instead of 1.9 s.

What to do
Before fit(), build the optimizer, and either give the model an Input layer or call
model.build(input_shape). That moves the initialization out of the first epoch and avoids the second
trace.

Blind spots
The initialization still happens, only earlier: the program as a whole saves just the second trace
and the initializer's graph. Variables that are restored from a checkpoint afterward need no initial
values at all, but the trace cannot show that.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import removed, spare_trace
from stall_analyzer.detectors.severity import CONSIDER_SHARE
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST107"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    filling = signals.causes_ps["compile.variable_init"]
    if signals.share(filling) < CONSIDER_SHARE:
        return None
    builds = [build for function in signals.functions for build in function.builds]
    twice = sum(build.first_trace_ps + build.second_trace_ps for build in builds)
    spare = spare_trace(sum(build.spare_trace_ps for build in builds))
    moved = removed(filling)
    again = (
        f" Because of that, the step was traced twice, which took {seconds(twice)} in all."
        if twice
        else ""
    )
    return Finding(
        severity="consider",  # the filling is moved rather than saved, however long it takes
        title=f"Initializing variables takes {seconds(filling)} inside the first step",
        explanation=(
            "The first call created variables and filled them with their initial values, which "
            f"took {signals.with_share(filling)}.{again} If the variables already exist, the step "
            "is traced only once."
        ),
        change=Change(
            "Build the model and its optimizer before training.",
            "model.compile(optimizer, loss)\nmodel.fit(data)",
            "model.build(input_shape)  # or begin the model with keras.Input\n"
            "model.compile(optimizer, loss)\n"
            "model.optimizer.build(model.trainable_variables)\n"
            "model.fit(data)",
        ),
        lost_ps=filling + sum(build.tracing_ps for build in builds if build.second_trace_ps),
        gain=moved + spare,
        confidence=0.8,
        evidence=signals.evidence_of("compile.variable_init", "initializing variables"),
    )
