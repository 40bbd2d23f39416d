"""What the training thread was doing at each instant, by the innermost meaningful event.

Time that it spent waiting for a graph is labeled FOLLOW: the executors show what happened there.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.align.training_thread import FUNCTION_PREFIX, INITIALIZER_PREFIX, starts_graph
from stall_analyzer.attribute.refine import relabel_inside
from stall_analyzer.decode.vocabulary import CHECK_OPS, INPUT_OPS
from stall_analyzer.model.causes import code, codes_of_bucket
from stall_analyzer.model.columns import distinct
from stall_analyzer.model.intervals import (
    NOTHING,
    Layer,
    Segments,
    Tiling,
    among,
    covered,
    inherit,
    innermost,
    paint,
)
from stall_analyzer.model.timeline import TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import (
    names_where,
    rows_called,
    rows_inside,
    rows_of_line,
    rows_with,
    stat_of,
    text_is,
)
from stall_analyzer.model.units import PS_PER_US, Int32s, Int64s

FOLLOW = 200  # not a cause: look into the executor run

# Starting a graph that exists takes microseconds; a first start that takes longer optimizes and
# instantiates it. No event names that work.
INSTANTIATE_FROM_PS = 500 * PS_PER_US

EAGER_PREFIX = "EagerLocalExecute: "
KERNEL_RUNS = frozenset({"KernelAndDeviceFunc::Run", "KernelAndDeviceOp::Run"})
SUMMARY_OPS = frozenset(
    {"WriteSummary", "WriteScalarSummary", "WriteHistogramSummary", "WriteImageSummary",
     "WriteGraphSummary", "WriteRawProtoSummary", "FlushSummaryWriter", "CreateSummaryFileWriter",
     "CloseSummaryWriter", "SummaryWriter"}
)  # fmt: skip
CHECKPOINT_OPS = frozenset(
    {"SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename", "SaveSlices"}
)


def thread_tiling(
    trace: Trace, training: TrainingThread, eager: bool, begin: int, end: int
) -> Tiling:
    """Cause codes (or FOLLOW) of the training thread over [begin, end) of trace time."""
    span = rows_of_line(trace, training.line)
    events = trace.events
    parent = np.where(events.parent[span] >= 0, events.parent[span] - span.start, -1)
    parent = parent.astype(np.int32)
    labels = _labels(trace, training, span, parent, eager)
    pieces = innermost(events.start_ps[span], events.duration_ps[span], parent, events.line[span])
    label = _with_retracing(trace, training, pieces, labels[pieces.owner])
    layers = [
        Layer(pieces.start[label == value], pieces.end[label == value], int(value))
        for value in distinct(label)
        if value != NOTHING
    ]
    tiling = paint(begin, end, layers, default=code("host.python"))
    start, stop = _instantiations(trace, training, span)
    starting = np.array([code("host.dispatch"), FOLLOW])
    return relabel_inside(tiling, start, stop, starting, "compile.instantiate")


def _labels(
    trace: Trace, training: TrainingThread, span: slice, parent: Int32s, eager: bool
) -> Int64s:
    """The label of each event of the line, its own or an inherited one."""
    name = trace.events.name[span]
    strong_names, weak_names = _by_name(trace)
    strong = strong_names[name]

    functions = rows_inside(span, rows_with(trace, "tf_function_call"))
    traced = text_is(trace, "tf_function_call", functions, lambda t: t.startswith("traced"))
    strong[functions - span.start] = np.where(
        traced, code("compile.tracing"), code("host.dispatch")
    )
    weak = weak_names[name]
    is_run = names_where(trace, KERNEL_RUNS.__contains__)[name]
    around = inherit(strong, parent)
    followed = training.runs.row - span.start
    followed = followed[around[followed] != code("compile.variable_init")]
    strong[followed] = FOLLOW
    strong[_lost_runs(trace, training, span)] = code("unknown.no_evidence")
    # An eager op inside tracing is part of tracing; elsewhere it speaks for itself.
    compiling = among(inherit(strong, parent), codes_of_bucket("compile"))
    own = np.where(strong != NOTHING, strong, np.where(compiling, NOTHING, weak))
    if eager:
        # In an eager op the kernel computes, and the rest is the host's work to start it. If graphs
        # train, an eager op belongs to a callback or to Keras itself, so it is host time in any
        # case.
        around = inherit(own, parent)
        own[is_run & (own == NOTHING) & (around == code("host.eager"))] = code("compute.eager_op")
    return inherit(own, parent)


def _lost_runs(trace: Trace, training: TrainingThread, span: slice) -> Int64s:
    """Graph runs whose id is not known (a truncated file, a remote worker): what they did is
    unknown."""
    events = trace.events
    kernels = rows_inside(span, rows_called(trace, "EagerKernelExecute"))
    is_graph = names_where(trace, starts_graph)
    around = events.parent[kernels]
    kernels = kernels[(around >= 0) & is_graph[events.name[around]]]
    starts = np.append(np.sort(training.runs.start_ps), 1 << 62)
    next_run = starts[np.searchsorted(starts, events.start_ps[kernels])]
    lost = next_run >= events.end_ps[kernels]
    return np.asarray(kernels[lost] - span.start, dtype=np.int64)


def _by_name(trace: Trace) -> tuple[Int64s, Int64s]:
    """For each name: the label that overrides what is around it, and the one that does not."""
    strong = np.full(len(trace.names), NOTHING, dtype=np.int64)
    weak = np.full(len(trace.names), NOTHING, dtype=np.int64)
    for index, name in enumerate(trace.names):
        if name == "tf.function-graph_building":
            strong[index] = code("compile.tracing")
        elif name.startswith(INITIALIZER_PREFIX):
            strong[index] = code("compile.variable_init")
        elif name.startswith(FUNCTION_PREFIX):
            strong[index] = code("host.dispatch")
        elif name.startswith(EAGER_PREFIX):
            weak[index] = code(_eager_cause(name[len(EAGER_PREFIX) :]))
        elif name == "TFE_DeleteTensorHandle":  # recorded only if it is slow
            weak[index] = code("input.iterator_teardown")
    return strong, weak


def _eager_cause(op: str) -> str:
    if op in INPUT_OPS:
        return "input.wait"
    if "Iterator" in op or op.endswith(("Dataset", "DatasetV2", "DatasetV3")):
        return "input.iterator_create"
    if op in SUMMARY_OPS:
        return "host.summary"
    if op in CHECKPOINT_OPS:
        return "host.checkpoint"
    if op in CHECK_OPS:
        return "numerics.check_ops"
    return "host.eager"


def _instantiations(trace: Trace, training: TrainingThread, span: slice) -> tuple[Int64s, Int64s]:
    """Before it is launched for the first time, a graph is optimized and instantiated."""
    events = trace.events
    is_graph = names_where(trace, starts_graph)
    graphs = np.flatnonzero(is_graph[events.name[span]]) + span.start
    _, first = np.unique(events.name[graphs], return_index=True)
    start, end = events.start_ps[graphs[first]], events.end_ps[graphs[first]]
    launches = np.sort(training.runs.launch_ps)
    launch = np.append(launches, 1 << 62)[np.searchsorted(launches, start)]
    slow = (launch - start > INSTANTIATE_FROM_PS) & (launch < end)
    return start[slow], launch[slow]


def _with_retracing(
    trace: Trace, training: TrainingThread, pieces: Segments, label: Int64s
) -> Int64s:
    """Tracing in a call of a function that had been traced before is retracing."""
    calls = training.calls
    counts = stat_of(trace, "tracing_count", calls.row)
    names = trace.events.name[calls.row]
    seen: dict[int, int] = {}
    again = np.zeros(len(calls.row), dtype=np.bool_)
    for call in np.flatnonzero(calls.traced):
        name, count = int(names[call]), int(counts[call])
        again[call] = count > seen.get(name, count) >= 1
        seen[name] = max(seen.get(name, 0), count)
    start, end = calls.start_ps[again], calls.end_ps[again]
    retracing = covered(pieces.start, start, end) & (label == code("compile.tracing"))
    return np.where(retracing, code("compile.retracing"), label)
