"""Python between the steps keeps training waiting.

What it finds
Long pauses between two calls of the train function in which the training thread runs Python code:
callbacks, the body of a custom loop, the garbage collector. Whatever a callback or the loop does
with the model in such a pause counts in full, including the datasets, iterators and graphs of
`model.predict` and `model.evaluate`.

Why it stalls
The next step begins only when every callback of the last step has returned. A callback that takes
30 ms makes a step of 5 ms seven times as long. `model.predict` creates a dataset, an iterator and a
list of callbacks each time it is called: about 40 ms, no matter how little data it is given.

How it is measured
The training thread's time between calls, not counting saving, summaries and the second or two that
Keras needs to set itself up. Keras needs up to 5 ms between steps; only longer pauses count. If the
Python tracer was on, the functions are named. A capture times each hook of a callback. Iterators
created and functions called between two steps of an epoch are attributed to a callback or the loop,
unless they come with every step. `fit`'s own validation at the end of an epoch does not count.

Example
A callback reported to a server after each of 60 batches: 31 ms a step, 1.9 s of the epoch's 2.5 s.

What to do
Run the code less often (every 100 batches, or in on_epoch_end), or in another thread. For a small
batch, call `model(x, training=False)` or `model.predict_on_batch(x)`, not `model.predict(x)`.

Blind spots
Without the Python tracer or a capture, the code that ran in a pause is not named. Python threads
that hold the interpreter (such as workers of a PyDataset) also make pauses longer; if the calls
themselves are slow to start as well, and only some pauses are long, nothing is reported.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.decode.vocabulary import TRAIN_STEPS
from stall_analyzer.detectors.gains import (
    at_pace_of_input,
    every_epoch,
    removed,
    warmer_steps,
)
from stall_analyzer.detectors.host.side_advice import EXPLANATIONS, change_for, side_name
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import median, percentile
from stall_analyzer.model.findings import Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.booked_costs import costliest
from stall_analyzer.signals.signals import Signals

ID = "ST401"
BUCKET = "host"

# Keras itself takes one to three milliseconds of Python between two steps.
KERAS_PAUSE_PS = 5 * PS_PER_MS
# Starting a graph takes about a millisecond. If it takes this long, and at least this share of the
# pauses, all Python is slow: another thread holds the interpreter, or the machine is too busy.
SLOW_DISPATCH_PS = 3 * PS_PER_MS
SLOW_DISPATCH_SHARE = 0.3
# A callback after each step makes every pause long; waiting for the interpreter, only some of them.
SHORTEST_PERCENT = 10
# What happens once or twice in an epoch is already rare; it is reported only if it takes a lot.
OFTEN = 3
# A function that holds this share of the pauses is the one to name.
NAMED_SHARE = 0.5
BETTER_CAPTURE = (
    "The trace does not show which function that was: profile again with the Python tracer "
    "(python_tracer_level=1 in ProfilerOptions; TensorFlow 2.21 ignores that option, but the "
    "capture dialog of TensorBoard's Profile tab passes it on)."
)


def check(signals: Signals) -> Finding | None:
    return _traced(signals) if signals.traces else _booked(signals)


def _booked(signals: Signals) -> Finding | None:
    """From the capture's timing of each hook."""
    cost = costliest(signals.booked_costs, Account.CALLBACK, Account.SIDE)
    severity = severity_of(signals.share(cost.spent_ps)) if cost is not None else None
    if cost is None or severity is None:
        return None
    gain, often = removed(cost.spent_ps), cost.count >= OFTEN
    times = ", once" if cost.count == 1 else f" each time, {cost.count:,} times in all"
    return Finding(
        severity=severity,
        title=f"{cost.name} takes {seconds(cost.spent_ps // max(cost.count, 1))}{times}",
        explanation=(
            f"{cost.name} took {signals.with_share(cost.spent_ps)}, including everything it "
            f"calls, as timed by the capture.{cost.where_sentence}"
        ),
        change=change_for("", often=often, by_fit=True),
        lost_ps=cost.spent_ps,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.95,
        evidence=signals.evidence_of("host.callback", cost.name),
    )


def _traced(signals: Signals) -> Finding | None:
    pauses = signals.between_steps
    taken = pauses.unnamed_ps + pauses.side.tracing_ps
    long = pauses.recurs & (taken > KERAS_PAUSE_PS)
    lost, count = int(taken[long].sum()), int(long.sum())
    severity = severity_of(signals.share(lost))
    if severity is None or (count < OFTEN and severity != "act"):
        return None
    slow_python = _python_is_slow(signals, lost)
    shortest = percentile(taken[pauses.recurs], SHORTEST_PERCENT)
    if slow_python and shortest <= KERAS_PAUSE_PS:
        return None
    usual = int(median(taken[long]))
    often = count >= len(signals.training_steps) / 2
    if often or pauses.side.whole_ps[1]:
        lost += min(usual, int(taken[1]))  # it ran after the first step as well
    warmer = warmer_steps(signals) if often else Gain()
    beside = side_name(pauses.side, pauses.side.whole_ps[long], lost)
    name = _culprit(signals, lost) or beside or _timed_hook(signals, lost)
    saved = Gain(round(0.8 * max(lost - count * KERAS_PAUSE_PS, 0)), lost) + warmer
    gain = at_pace_of_input(signals, saved)
    return Finding(
        severity=severity,
        title=(
            f"{name or 'Python between the steps'} takes {seconds(usual)} {_where(signals, count)}"
        ),
        explanation=(
            f"In {count} of {len(pauses.start_ps)} pauses between calls to the train function, "
            f"Python kept the training thread busy for a total of {signals.with_share(lost)}. "
            "Keras itself needs a few milliseconds of each pause; the rest went to a callback or "
            "the loop's own code."
            + (EXPLANATIONS.get(beside, "") if name else f" {BETTER_CAPTURE}")
        ),
        change=change_for(beside, often=count >= OFTEN, by_fit=_is_fit(signals)),
        lost_ps=lost + warmer.high_ps,
        # Steps that are interrupted are also slower, and a callback may build graphs.
        blames=("host", "compute", "compile")
        if pauses.side.tracing_ps.any()
        else ("host", "compute"),
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.9 if name else 0.5 if slow_python else 0.8,
        evidence=signals.evidence_at(
            pauses.start_ps[long], pauses.end_ps[long], "Python between two calls"
        ),
    )


def _is_fit(signals: Signals) -> bool:
    return any(f.trains and f.name in TRAIN_STEPS for f in signals.functions)


def _python_is_slow(signals: Signals, lost: int) -> bool:
    dispatch = signals.causes_ps["host.dispatch"]
    calls = max(len(signals.between_steps.start_ps) - 1, 1)
    return dispatch > SLOW_DISPATCH_PS * calls and dispatch > SLOW_DISPATCH_SHARE * lost


def _culprit(signals: Signals, lost: int) -> str:
    """The function that took most of it, if the Python tracer saw one."""
    calls = signals.between_steps.python_calls
    return calls[0].name if calls and calls[0].self_ps >= NAMED_SHARE * lost else ""


def _timed_hook(signals: Signals, lost: int) -> str:
    """The callback hook that took most of it, as timed by the capture."""
    cost = costliest(signals.booked_costs, Account.CALLBACK)
    return cost.name if cost is not None and cost.spent_ps >= NAMED_SHARE * lost else ""


def _where(signals: Signals, count: int) -> str:
    often = count >= len(signals.training_steps) / 2
    if often:
        return "after each step"
    return "in one pause" if count == 1 else f"in each of {count} pauses"
