"""The steps in a trace, and which of them train.

Markers that the user or Keras set come first; most traces have none, and then the calls of the
train function are the steps. In eager training, each fetch of a batch begins a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from stall_analyzer.decode.vocabulary import (
    BIT_GRADIENT,
    ON_BATCH_STEP,
    PREDICT_STEPS,
    TEST_STEPS,
    TRAIN_STEPS,
    UPDATE_OPS,
)
from stall_analyzer.model.columns import distinct, is_in
from stall_analyzer.model.intervals import covered, enclosing
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Calls, TracedSteps, TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import (
    names_where,
    outermost,
    rows_called,
    rows_inside,
    rows_numbered,
    rows_of_line,
    rows_with,
    stat_of,
)
from stall_analyzer.model.units import PS_PER_MS, Bools, Int64s

FETCH_OPS = ("IteratorGetNext", "IteratorGetNextSync")
# Assignments further apart than this are not one burst; resetting one metric takes 0.1 ms.
BURST_GAP_PS = 2 * PS_PER_MS
# A single assignment is a learning-rate callback; a metric has at least a total and a count.
BURST_LEAST = 2
# Creating an iterator is a chain of dataset ops that follow each other this closely.
ITERATOR_GAP_PS = 5 * PS_PER_MS
# A function that is called in this share of the pauses between steps belongs to the step.
PART_OF_STEP = 0.5


def _nowhere() -> Int64s:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Landmarks:
    """What the training thread does between epochs, as disjoint intervals in order."""

    reset_start_ps: Int64s  # bursts of assignments: Keras resets its metrics
    reset_end_ps: Int64s
    iterator_start_ps: Int64s  # iterators being created
    iterator_end_ps: Int64s
    # Datasets that Keras created or whose size it asked for (when a fit() begins), and variables
    # that were created (when a model is created or compiled).
    dataset_ps: Int64s = field(default_factory=_nowhere)
    variable_ps: Int64s = field(default_factory=_nowhere)
    loop_ps: int | None = None  # when a custom loop began, if the trace shows that


def find_resets(trace: Trace, training: TrainingThread) -> tuple[Int64s, Int64s]:
    """When Keras resets its metrics, for training or anything else."""
    assigns = eager_rows(trace, training, lambda op: op == "AssignVariableOp")
    variables = eager_rows(trace, training, "VarHandleOp".__eq__)
    started = trace.events.start_ps
    assigns = assigns[~_is_first_since(started[variables], started[assigns])]
    start, end, count = _clusters(trace, assigns, BURST_GAP_PS)
    return start[count >= BURST_LEAST], end[count >= BURST_LEAST]


def find_landmarks(trace: Trace, training: TrainingThread) -> Landmarks:
    reset_start, reset_end = find_resets(trace, training)
    makes = eager_rows(
        trace, training, lambda op: op == "MakeIterator" or "AnonymousIterator" in op
    )
    makes = makes[_of_training(training, trace.events.start_ps[makes])]
    made_start, made_end, _ = _clusters(trace, makes, ITERATOR_GAP_PS)
    called = {trace.names[name] for name in distinct(trace.events.name[training.calls.row])}
    # train_on_batch() resets the metrics before each step; its loop may also assign weights.
    epochs_of_fit = ON_BATCH_STEP not in called or bool(called & TRAIN_STEPS)
    own = _of_training(training, reset_start) & epochs_of_fit
    found = Landmarks(
        reset_start[own],
        reset_end[own],
        made_start,
        made_end,
        loop_ps=_loop_begin(training.calls),
    )
    if not called & (TEST_STEPS - {ON_BATCH_STEP}):
        return found
    datasets = trace.events.start_ps[eager_rows(trace, training, lambda op: "Dataset" in op)]
    variables = trace.events.start_ps[eager_rows(trace, training, "VarHandleOp".__eq__)]
    own = _of_training(training, datasets)
    return replace(found, dataset_ps=datasets[own], variable_ps=variables)


def _is_first_since(made_ps: Int64s, at_ps: Int64s) -> Bools:
    """Whether anything was created since the last one: a new variable gets its first value."""
    before = np.concatenate([[-1], at_ps[:-1]])
    return np.searchsorted(made_ps, at_ps) > np.searchsorted(made_ps, before)


def _loop_begin(calls: Calls) -> int | None:
    """The first call of the first step, if its functions were traced then, so that nothing came
    before. What is called before the first step, and again before the second, is part of the loop.
    """
    trained = np.flatnonzero((calls.bits & BIT_GRADIENT) > 0)
    if len(trained) == 0 or not calls.traced[trained[0]]:
        return None
    first, second = int(trained[0]), int(trained[min(1, len(trained) - 1)])
    again = calls.concrete[first + 1 : second]
    before = np.flatnonzero(is_in(calls.concrete[:first], again[again >= 0]))
    return int(calls.start_ps[min([first, *before])])


def find_traced_steps(trace: Trace, training: TrainingThread) -> TracedSteps:
    span = rows_of_line(trace, training.line)
    # The capture also marks steps that the user marks.
    marked = outermost(trace, rows_inside(span, rows_with(trace, "step_num")))
    marked = marked[_of_training(training, trace.events.start_ps[marked])]
    fetches = eager_rows(trace, training, FETCH_OPS.__contains__)
    own_fetches = fetches[_of_training(training, trace.events.start_ps[fetches])]
    calls = training.calls
    trains = calls_that_train(trace, training)
    stepping = (calls.concrete >= 0) & _of_training(training, calls.start_ps)
    # A custom loop calls a function for each batch; with run_eagerly, hardly any are called.
    eager = int(stepping.sum()) * 2 < max(len(own_fetches), len(marked), 1)
    if len(marked):
        return _marked(trace, marked, eager)
    if not eager:
        stepping &= ~_in_most_pauses(calls, trains)
        return TracedSteps(
            calls.start_ps[stepping],
            calls.end_ps[stepping],
            trains[stepping],
            "function",
            eager=False,
        )
    return _fetched(trace, training, own_fetches if len(own_fetches) else fetches)


def _of_training(training: TrainingThread, at: Int64s) -> Bools:
    """Which instants are not part of a callback's own work."""
    return ~covered(at, training.side.start_ps, training.side.end_ps)


def _in_most_pauses(calls: Calls, trains: Bools) -> Bools:
    """Calls without a backward pass that come with nearly every step: they belong to it."""
    pause = np.searchsorted(calls.start_ps[trains], calls.start_ps)
    found = np.zeros(len(trains), dtype=np.bool_)
    for graph in distinct(calls.concrete[~trains]):
        mine = ~trains & (calls.concrete == graph)
        found |= mine & (len(distinct(pause[mine])) > PART_OF_STEP * trains.sum())
    return found


def device_steps(trace: Trace) -> TracedSteps | None:
    """Steps as the profiler marked them on devices, for traces in which no thread trains.

    A step of several devices begins with the first of them and ends with the last.
    """
    is_steps = [
        line.name == "Steps" and trace.planes[line.plane].name.startswith("/device:")
        for line in trace.lines
    ]
    rows = np.flatnonzero(np.array(is_steps, dtype=np.bool_)[trace.events.line])
    if len(rows) == 0:
        return None
    events, name = trace.events, trace.events.name[rows]
    steps = sorted(
        (int(events.start_ps[mine].min()), int(events.end_ps[mine].max()))
        for mine in (rows[name == each] for each in distinct(name))
    )
    start, end = np.array(steps, dtype=np.int64).T
    end[:-1] = np.minimum(end[:-1], start[1:])  # one device may be ahead of the others
    return TracedSteps(start, end, np.ones(len(start), np.bool_), "device", eager=False)


def eager_rows(trace: Trace, training: TrainingThread, wanted: Callable[[str], bool]) -> Int64s:
    """Eager ops of the training thread that no function call encloses."""
    prefix = "EagerLocalExecute: "
    span = rows_of_line(trace, training.line)
    named = [number for op, number in trace.numbers_after(prefix).items() if wanted(op)]
    rows = rows_numbered(trace, named, span)
    calls = training.calls
    outside = enclosing(calls.start_ps, calls.end_ps, trace.events.start_ps[rows]) < 0
    return rows[outside]


def _clusters(trace: Trace, rows: Int64s, gap_ps: int) -> tuple[Int64s, Int64s, Int64s]:
    """Rows that follow each other closely, merged: start, end and how many."""
    start, end = trace.events.start_ps[rows], trace.events.end_ps[rows]
    if len(rows) == 0:
        return start, end, start
    opens = np.flatnonzero(np.concatenate([[True], start[1:] - end[:-1] > gap_ps]))
    closes = np.append(opens[1:], len(rows))
    return start[opens], end[closes - 1], closes - opens


def _marked(trace: Trace, rows: Int64s, eager: bool) -> TracedSteps:
    events = trace.events
    validation = rows_called(trace, "test", "predict")
    epoch = stat_of(trace, "epoch_num", rows) if len(rows_with(trace, "epoch_num")) else None
    trains = ~is_in(rows, validation)
    number = stat_of(trace, "step_num", rows)
    start, end = events.start_ps[rows], events.end_ps[rows]
    return TracedSteps(start, end, trains, "marker", eager, epoch, number)


def calls_that_train(trace: Trace, training: TrainingThread) -> Bools:
    """Calls whose graph has a backward pass.

    XLA hides the ops. Then the first graph trains, and another graph of the same Python function
    validates if its first call comes right after Keras has reset its metrics.
    """
    calls = training.calls
    backward = (calls.bits & BIT_GRADIENT) > 0
    if backward.any():
        return is_in(calls.concrete, calls.concrete[backward])
    trains = ~names_where(trace, PREDICT_STEPS.__contains__)[trace.events.name[calls.row]]
    graphs, first_call = np.unique(calls.concrete, return_index=True)
    earliest = first_call[(graphs >= 0) & trains[first_call]].min(initial=len(calls.row))
    reset, _ = find_resets(trace, training)
    for graph, call in zip(graphs, first_call, strict=True):
        if call <= earliest:
            continue
        since, until = calls.end_ps[call - 1], calls.start_ps[call]
        was_reset = bool(((reset >= since) & (reset < until)).any())
        same_function = trace.events.name[calls.row[call]] == trace.events.name[calls.row[earliest]]
        if was_reset and same_function:
            trains[calls.concrete == graph] = False
    return trains


def _fetched(trace: Trace, training: TrainingThread, fetches: Int64s) -> TracedSteps:
    events = trace.events
    span = rows_of_line(trace, training.line)
    start = events.start_ps[fetches]
    last = events.end_ps[span].max(initial=0)
    end = np.append(start[1:], last)[: len(start)]
    updates = events.start_ps[eager_rows(trace, training, UPDATE_OPS.__contains__)]
    updated = np.searchsorted(updates, end) > np.searchsorted(updates, start)
    # Nothing is updated by the fetch that finds the end of the data, or in validation.
    trains = updated if updated.any() else np.ones(len(start), np.bool_)
    steps = ~_finds_the_end(trace, training, start, trains)
    return TracedSteps(start[steps], end[steps], trains[steps], "iterator", eager=True)


def _finds_the_end(trace: Trace, training: TrainingThread, fetched: Int64s, trains: Bools) -> Bools:
    """Fetches after a step and before a new training iterator: the epoch ends with them."""
    makes = eager_rows(trace, training, "MakeIterator".__eq__)
    made = np.searchsorted(np.sort(trace.events.start_ps[makes]), fetched)
    between = np.zeros(len(fetched), dtype=np.bool_)
    between[1:-1] = trains[:-2] & ~trains[1:-1] & trains[2:] & (made[2:] > made[1:-1])
    return between
