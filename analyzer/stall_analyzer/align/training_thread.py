"""Find the thread that trains, and the graph runs that it waits for.

The thread that calls `fit` spends its time in tf.function calls. Below each call the runtime starts
an executor run with its own id; events on the worker threads carry that id, which distinguishes
their work from the input pipeline's at the same time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stall_analyzer.model.columns import is_in
from stall_analyzer.model.intervals import enclosing
from stall_analyzer.model.timeline import Calls, FunctionRuns, TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import (
    ABSENT,
    outermost,
    rows_called,
    rows_inside,
    rows_named,
    rows_of_line,
    rows_with,
    stat_of,
    text_is,
)
from stall_analyzer.model.units import Int64s, UInt32s

HOST_PLANE = "/host:CPU"
FUNCTION_PREFIX = "EagerLocalExecute: __inference_"
INITIALIZER_PREFIX = "EagerLocalExecute: __inference_initialize_variables"

# A marker that the user or Keras set is the best evidence, and an eager op the weakest: a
# py_function's thread also runs eager ops.
MARKER_WEIGHT = 100
CALL_WEIGHT = 10
EAGER_WEIGHT = 1


def starts_graph(name: str) -> bool:
    return name.startswith(FUNCTION_PREFIX)


def follow_training(trace: Trace) -> TrainingThread | None:
    """The training thread, or None if no thread calls TensorFlow functions (remote workers)."""
    line = _training_line(trace)
    if line is None:
        return None
    calls = _calls(trace, line)
    runs = _function_runs(trace, line, calls)
    return TrainingThread(line, _with_bits(calls, runs), runs)


def _training_line(trace: Trace) -> int | None:
    events = trace.events
    eager = rows_called(trace, "EagerExecute")
    function = rows_with(trace, "tf_function_call")
    marker = rows_with(trace, "step_num")
    marker = marker[~is_in(marker, function)]
    score = np.zeros(len(trace.lines), dtype=np.float64)
    for rows, weight in ((marker, MARKER_WEIGHT), (function, CALL_WEIGHT), (eager, EAGER_WEIGHT)):
        tops = rows[~is_in(events.parent[rows], rows)]
        np.add.at(score, events.line[tops], weight * events.duration_ps[tops] / 1e12)
    on_host = [trace.planes[line.plane].name == HOST_PLANE for line in trace.lines]
    score[~np.array(on_host, dtype=np.bool_)] = 0
    return int(score.argmax()) if len(score) and score.max() > 0 else None


def _calls(trace: Trace, line: int) -> Calls:
    events = trace.events
    span = rows_of_line(trace, line)
    # Calls nest while tracing.
    rows = outermost(trace, rows_inside(span, rows_with(trace, "tf_function_call")))
    start, end = events.start_ps[rows], events.end_ps[rows]
    graphs = rows_named(
        trace, lambda n: n.startswith(FUNCTION_PREFIX) and not n.startswith(INITIALIZER_PREFIX)
    )
    graphs = rows_inside(span, graphs)
    concrete = np.full(len(rows), -1, dtype=np.int32)
    call = enclosing(start, end, events.start_ps[graphs])
    concrete[call[call >= 0]] = events.name[graphs[call >= 0]]  # the last one in a call wins
    return Calls(
        row=rows,
        start_ps=start,
        end_ps=end,
        concrete=concrete,
        traced=text_is(trace, "tf_function_call", rows, lambda text: text.startswith("traced")),
        bits=np.zeros(len(rows), dtype=np.uint32),
    )


def _function_runs(trace: Trace, line: int, calls: Calls) -> FunctionRuns:
    events = trace.events
    span = rows_of_line(trace, line)
    launches = rows_inside(span, rows_called(trace, "FunctionRun"))
    ids = stat_of(trace, "id", launches)
    # The launch itself is short; the kernel run around it lasts until the graph is done.
    waits = events.parent[launches]
    known = (ids != ABSENT) & (waits >= 0)
    launches, ids, waits = launches[known], ids[known], waits[known]
    # A graph on several devices is launched once per device, under one id.
    ids, first = np.unique(ids, return_index=True)
    waits, launches = waits[first].astype(np.int64), launches[first]
    return FunctionRuns(
        id=ids,
        row=waits,
        start_ps=events.start_ps[waits],
        end_ps=events.end_ps[waits],
        launch_ps=events.start_ps[launches],
        bits=_bits_of_runs(trace, ids),
        call=enclosing(calls.start_ps, calls.end_ps, events.start_ps[waits]),
    )


def _bits_of_runs(trace: Trace, ids: Int64s) -> UInt32s:
    """What the ops of each run were, gathered from the executors of all threads."""
    bits = np.zeros(len(ids), dtype=np.uint32)
    rows = rows_called(trace, "ExecutorState::Process")
    index = run_of(ids, stat_of(trace, "id", rows))
    np.bitwise_or.at(bits, index[index >= 0], trace.events.folded[rows[index >= 0]])
    return bits


def run_of(ids: Int64s, wanted: Int64s) -> Int64s:
    """Position of each wanted id in the ordered `ids`, or -1 if it is not among them."""
    if len(ids) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    index = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[index] == wanted, index, -1)


def _with_bits(calls: Calls, runs: FunctionRuns) -> Calls:
    bits = calls.bits.copy()
    inside = runs.call >= 0
    np.bitwise_or.at(bits, runs.call[inside], runs.bits[inside])
    return replace(calls, bits=bits)
