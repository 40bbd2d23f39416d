"""Steps are so short that starting them takes longer than running them.

What it finds
Graph-mode training in which Python and TensorFlow take longer to start a step than to compute it.

Why it stalls
Each call of the training function passes through Keras's loop, its callbacks and TensorFlow's
runtime. That takes a few milliseconds, no matter what the step does.

How it is measured
For the training steps from the second to the last, the ledger's dispatch time, short gaps in Python
and Keras's own eager ops are added up and compared with the total time. Gaps long enough to be a
callback do not count, and neither does the time taken by logging and the profiler.

Example
1,600 steps of 16 rows: 4.6 s of 5.6 s went to starting them. With steps_per_execution=32 the epoch
took 4.0 s instead of 6.4 s.

What to do
Run several steps per call: steps_per_execution in compile(), or a loop over tf.range inside the
tf.function. Larger batches have the same effect, but they change how the model trains.

Blind spots
Fewer calls also mean less logging and tracing, so the upper end of the prediction holds only for a
run that logs as much as this one. With several steps per call, callbacks see only every nth batch,
and training may have to wait for batches that used to be prepared while Python was busy.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import at_pace_of_input, every_epoch, measuring_ps, partly
from stall_analyzer.detectors.larger_batch import room_for_larger_batch
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.signals.compile.functions import FunctionSignals
from stall_analyzer.signals.host.overhead import Overhead, step_overhead
from stall_analyzer.signals.signals import Signals

ID = "ST109"
BUCKET = "host"

# Starting dominates when it takes more than everything else together.
DOMINATES = 0.5
# With fewer steps, there is no telling how long a typical one takes.
STEPS_LEAST = 50
# What is left: the loop inside the call, and batches that now have to be waited for.
GAIN_LEAST = 0.5
GAIN_MOST = 1.0
# A step of a few tiny ops is mostly thread wake-ups, and so is the wait for a batch that is ready.
# In our runs, anywhere from almost none to nine tenths of that went away.
WAKING_MOST = 0.7
# Beyond this many steps per call, hardly anything more is saved, and callbacks run too rarely.
STEPS_PER_CALL_MOST = 32


def check(signals: Signals) -> Finding | None:
    function = next((f for f in signals.functions if f.trains), None)
    # The first step builds code.
    overhead = step_overhead(signals.host.ledger, signals.training_steps[1:])
    if function is None or not _dominates(signals, overhead):
        return None
    lost = _starting_ps(overhead)
    beside = _beside_ps(signals)
    surely = partly(lost, GAIN_LEAST, GAIN_MOST)
    gain = at_pace_of_input(signals, surely + Gain(0, beside))
    severity = severity_of(gain.low_ps / (signals.window_ps - signals.buckets_ps["profiler"]))
    if severity is None:
        return None
    per_step = lost // overhead.steps
    return Finding(
        severity=severity,
        title=f"Starting a step takes {seconds(per_step)}, longer than the step itself",
        explanation=(
            f"{overhead.steps} steps took {seconds(overhead.own_span_ps)}, of which "
            f"{seconds(lost)} ({percent(lost, overhead.own_span_ps)}) went to starting "
            "them in Python and TensorFlow. If one call runs several steps, they share that cost."
            + room_for_larger_batch(signals)
        ),
        change=_change(function, overhead.steps),
        lost_ps=lost + beside,
        # Hooks, logs and thread wake-ups come with each call.
        blames=("host", "compute", "input", "profiler"),
        gain=gain,
        later_gain=every_epoch(at_pace_of_input(signals, surely), signals),
        confidence=0.7,
        evidence=signals.evidence_of("host.dispatch", "starting a step"),
    )


def _dominates(signals: Signals, overhead: Overhead) -> bool:
    if overhead.steps < STEPS_LEAST or any(aligned.eager for aligned in signals.traces):
        return False
    if signals.keras is not None and (signals.keras.steps_per_execution or 1) > 1:
        return False
    # A callback that runs ops of its own needs every batch; Keras's own ops are few.
    if overhead.eager_ps > overhead.dispatch_ps:
        return False
    # Where batches are late, faster steps would only wait longer for them.
    late = signals.causes_ps["input.wait"]
    return _starting_ps(overhead) > max(DOMINATES * overhead.own_span_ps, late)


def _starting_ps(overhead: Overhead) -> int:
    return overhead.dispatch_ps + overhead.eager_ps + overhead.short_gaps_ps


def _beside_ps(signals: Signals) -> int:
    """What else may be saved because it comes with each call."""
    causes = signals.causes_ps
    waking = causes["compute.step"] + causes["compute.runtime"] + causes["input.wait"]
    return measuring_ps(signals) + round(WAKING_MOST * waking)


def _change(function: FunctionSignals, steps: int) -> Change:
    together = STEPS_PER_CALL_MOST
    while together > 2 and together * 4 > steps:
        together //= 2
    if function.is_keras:
        return Change(
            "Run several steps per call. Callbacks and batch logging then run once per call.",
            "model.compile(optimizer, loss)",
            f"model.compile(optimizer, loss, steps_per_execution={together})",
        )
    return Change(
        "Run several steps per call, in a loop that stays in the graph.",
        f"for x, y in data:\n    {function.name}(x, y)",
        "@tf.function\ndef several_steps(iterator):\n"
        f"    for _ in tf.range({together}):\n        {function.name}(*next(iterator))",
    )
