"""A function is traced again and again during the first epoch.

What it finds
A function on the training thread that was traced again after its first call. Four patterns are
distinguished: a new tf.function object each time, one retrace in the very last call (a smaller last
batch), a trace in nearly every call, and a trace now and then. A single retrace elsewhere is only a
note, because two graphs are often intended.

Why it stalls
Each combination of tensor shapes, dtypes and Python arguments needs a graph of its own. Tracing and
instantiating it can take as long as hundreds of steps.

How it is measured
The calls that the profile marks as traced, except the function's first call, and how much longer
than usual they took, not counting input. The tracing_count of the calls distinguishes a new
tf.function (the count starts over) from a new trace of the old one (the count grows). The steps of
two models are two functions with the same name; the first trace of each does not count. A capture
times every graph that is built in the epoch. If it measures more than the profile shows, its figure
is used as the cost, plus the time to prepare every graph but the first. If a capture could
not time graph building, it counts the traces of Keras's training step; the cost is how much longer
the steps with a trace took than the others.

Example
A loop passed a Python number to its step: 15 calls built 15 graphs, which took 3.3 s of 3.8 s.

What to do
Pass numbers as tensors. For changing shapes, use reduce_retracing=True or an input_signature with
None. Make the last batch as large as the others with drop_remainder=True. Create the tf.function
once, outside the loop.

Blind spots
A trace contains neither shapes nor arguments, so the reason is inferred from the order of the
calls. Functions that are traced inside tf.data or on other threads are not examined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.decode.vocabulary import KERAS_STEPS
from stall_analyzer.detectors.gains import every_epoch, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Evidence, Finding, Gain
from stall_analyzer.model.format import listed, seconds, size
from stall_analyzer.signals.booked_costs import costliest
from stall_analyzer.signals.compile.functions import Build, FunctionSignals
from stall_analyzer.signals.signals import Signals

ID = "ST104"
BUCKET = "compile"

# From this share of calls on, every value is new, not just some.
NEARLY_ALL = 0.8

SMALLER_NEEDS_ITS_OWN = (
    "A last batch that is smaller than the others has a different shape and needs its own graph."
)
SMALLER_LAST_BATCH = Change(
    "Drop the smaller last batch, or pad it.",
    "data = data.batch(size)",
    "data = data.batch(size, drop_remainder=True)",
)
SHAPES_BEFOREHAND = Change(
    "With reduce_retracing, the second graph serves all shapes. If you declare the shapes in "
    "advance, only one graph is built.",
    "@tf.function(reduce_retracing=True)",
    "@tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])  # None: any length",
)
SAME_BATCHES = Change(
    "Give every batch the same shape, dtype and structure.",
    "model.train_on_batch(x[begin:end], y[begin:end])",
    "data = data.batch(size, drop_remainder=True)\nmodel.fit(data)",
)


def check(signals: Signals) -> Finding | None:
    # The profile knows each call; the capture also timed calls outside the profiled windows.
    found = [each for each in (_traced(signals), _booked(signals)) if each is not None]
    worst = max(found, key=lambda each: each.lost_ps, default=None) or _counted(signals)
    growth = signals.process_growth
    if worst is None or growth is None or not growth.by_graphs:
        return worst
    kept = f" Every graph is kept: the process grew by {size(growth.grown_bytes)} because of them."
    return replace(worst, explanation=worst.explanation + kept)


def _booked(signals: Signals) -> Finding | None:
    """From the capture's timing of graph building."""
    cost = costliest(signals.booked_costs, Account.RETRACE)
    if cost is None:
        return None
    # Every graph is also prepared, including the first.
    prepared = signals.causes_ps["compile.instantiate"] * cost.count // (cost.count + 1)
    lost = signals.causes_ps["compile.retracing"] + prepared
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    gain = _gain(lost, cost.count, new_each_time=False, last=False)
    is_keras = cost.name in KERAS_STEPS
    called = "The Keras training step" if is_keras else f"{cost.name}()"
    often = "once" if cost.count == 1 else f"{cost.count} times"
    return Finding(
        severity=severity if cost.count > 1 else "note",
        title=f"{called} was retraced {often}",
        explanation=(
            f"Rebuilding graphs and preparing them took {signals.with_share(lost)}, as timed by "
            f"the capture. A function is retraced when a call has a new shape, dtype or Python "
            f"argument.{cost.where_sentence}"
        ),
        change=_naming_arguments(
            signals, cost.name, SAME_BATCHES if is_keras else _as_tensors(cost.name)
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=_of_later_epochs(gain, signals),
        confidence=0.9,
        by_clocks=True,
        evidence=signals.evidence_of("compile.retracing", "traced again"),
    )


def _naming_arguments(signals: Signals, name: str, change: Change) -> Change:
    """Say which arguments changed: the capture compared each trace with the one before it."""
    costs = (cost for cost in signals.booked_costs if cost.name == name)
    cost = costliest([*costs], Account.RETRACE)
    if cost is None or not cost.why:
        return change
    if "None" in cost.why.partition(", now ")[2]:
        change = SHAPES_BEFOREHAND
    return replace(change, text=f"The function's arguments had changed ({cost.why}). {change.text}")


def _counted(signals: Signals) -> Finding | None:
    """From the capture's count of traces, where the profile shows no such call or too few."""
    again = signals.captured_retraces
    severity = severity_of(signals.share(again.lost_ps)) if again is not None else None
    if again is None or severity is None:
        return None
    last = len(again.steps) == 1 and int(again.steps[0]) == again.all_steps - 1
    if len(again.steps) == 1 and not last:
        severity = "note"
    named = listed([str(step + 1) for step in again.steps])
    often = "once" if again.count == 1 else f"{again.count} times"
    alone = len(again.steps) == 1
    return Finding(
        severity=severity,
        title=f"The Keras training step was retraced {often} in {again.all_steps:,} steps",
        explanation=(
            f"Its trace count grew in {'step' if alone else 'steps'} "
            f"{named}. "
            f"{'This step' if alone else 'These steps'} took {signals.with_share(again.lost_ps)} "
            "longer than usual. "
            + (
                SMALLER_NEEDS_ITS_OWN
                if last
                else f"{'It' if alone else 'Each of them'} had a batch with a new shape, dtype "
                "or structure."
            )
        ),
        change=SMALLER_LAST_BATCH if last else SAME_BATCHES,
        lost_ps=again.lost_ps,
        blames=("compile", "unknown"),  # not all of these steps were traced
        gain=_gain(again.lost_ps, max(len(again.steps), 1), new_each_time=False, last=last),
        confidence=0.9,
        evidence=signals.evidence_at(again.start_ps, again.end_ps, "traced again"),
    )


def _traced(signals: Signals) -> Finding | None:
    function = max(signals.functions, key=_lost_ps, default=None)
    if function is None:
        return None
    retraces, lost = function.retraces, _lost_ps(function)
    severity = severity_of(signals.share(lost))
    if severity is None:
        return None
    new_each_time = sum(build.new_function for build in retraces) * 2 > len(retraces)
    last = function.only_last_call(retraces)
    if len(retraces) == 1 and not last and not new_each_time:
        if severity == "consider":
            return None
        severity = "note"  # two kinds of batches, or a flag: two graphs may be intended
    gain = _gain(lost, len(retraces), new_each_time, last)
    return Finding(
        severity=severity,
        title=_title(function, last),
        explanation=(
            f"{function.opening} was called {function.calls} times and traced in "
            f"{len(retraces) + 1} of these calls{_when(function, last)}. Retracing took "
            f"{signals.with_share(lost)}{_usual(function)}. "
            f"{_reason(function, new_each_time, last)}"
        ),
        change=_naming_arguments(signals, function.name, _change(function, new_each_time, last)),
        lost_ps=lost,
        gain=gain,
        later_gain=_of_later_epochs(gain, signals),
        confidence=0.95 if new_each_time or last or len(retraces) > 1 else 0.6,
        evidence=_evidence(signals, retraces),
    )


def _lost_ps(function: FunctionSignals) -> int:
    """What retracing cost, without XLA, which ST106 covers."""
    return sum(function.extra_ps(build) - build.xla_ps for build in function.retraces)


def _gain(lost: int, retraces: int, new_each_time: bool, last: bool) -> Gain:
    if new_each_time or last:
        return removed(lost)
    # Relaxed shapes need one more graph, for the general case.
    return Gain(removed(lost).low_ps * (retraces - 1) // retraces, lost)


def _of_later_epochs(gain: Gain, signals: Signals) -> Gain:
    return every_epoch(gain, signals) if signals.comes_again("compile.retracing") else Gain()


def _title(function: FunctionSignals, last: bool) -> str:
    if last:
        return f"The last batch causes {function.words} to be traced again"
    times = len(function.retraces)
    often = "once" if times == 1 else f"{times} times"
    return f"{function.opening} was retraced {often} in {function.calls} calls"


def _when(function: FunctionSignals, last: bool) -> str:
    if last:
        return ": the first and the very last"
    calls = [build.call + 1 for build in function.retraces]
    named = ", ".join(str(call) for call in calls[:4])
    return f" (calls 1, {named}{' …' if len(calls) > 4 else ''})"


def _usual(function: FunctionSignals) -> str:
    usual = function.usual_call_ps
    return f"; a call without tracing takes {seconds(usual)}" if usual else ""


def _reason(function: FunctionSignals, new_each_time: bool, last: bool) -> str:
    if new_each_time:
        return (
            "Each time, the call used a new tf.function object, which knows nothing about earlier "
            "graphs."
        )
    if last:
        return SMALLER_NEEDS_ITS_OWN
    if len(function.retraces) + 1 >= NEARLY_ALL * function.calls:
        every = "Every" if len(function.retraces) + 1 >= function.calls else "Nearly every"
        return (
            f"{every} call had something new: a Python number or object as an argument, or a "
            "tensor of a different shape."
        )
    return "Now and then, a call had a new shape, dtype or Python argument."


def _change(function: FunctionSignals, new_each_time: bool, last: bool) -> Change:
    name = _usable(function.name)
    if new_each_time:
        return Change(
            "Create the tf.function once, before the loop.",
            f"for batch in data:\n    tf.function({name})(batch)",
            f"step_in_graph = tf.function({name})\nfor batch in data:\n    step_in_graph(batch)",
        )
    if last:
        return SMALLER_LAST_BATCH
    return SAME_BATCHES if function.is_keras else _as_tensors(function.name)


def _usable(name: str) -> str:
    """A lambda has no name."""
    return name if name.isidentifier() else "step"


def _as_tensors(function: str) -> Change:
    name = _usable(function)
    return Change(
        "Pass Python numbers as tensors, and let one graph serve all shapes. If an "
        "argument is an object or a lambda, pass the same one in every call.",
        f"@tf.function\ndef {name}(x, scale): ...\n\n{name}(x, 0.5)",
        f"@tf.function(reduce_retracing=True)\ndef {name}(x, scale): ...\n\n"
        f"{name}(x, tf.constant(0.5))",
    )


def _evidence(signals: Signals, retraces: Sequence[Build]) -> tuple[Evidence, ...]:
    longest = sorted(retraces, key=lambda build: -build.made_ps)[:8]
    line = signals.host.training_thread or ""
    return tuple(
        Evidence(
            signals.host.host,
            line,
            build.start_ps,
            min(build.start_ps + build.duration_ps, signals.window_ps),
            f"traced again in call {build.call + 1}",
        )
        for build in sorted(longest, key=lambda build: build.start_ps)
    )
