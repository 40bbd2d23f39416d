"""What the training thread was doing at each instant, by the innermost event that means something.

Time that it spent waiting for a graph is labelled FOLLOW: the executors tell what happened there.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.causes import code, codes_of_bucket
from stall_analyzer.intervals import NOTHING, Layer, Segments, Tiling, inherit, innermost, paint
from stall_analyzer.model import PS_PER_US, Int64s, Trace, TrainingThread
from stall_analyzer.names import rows_with, stat_of, text_is
from stall_analyzer.training import FUNCTION_PREFIX, INITIALIZER_PREFIX, rows_of_line
from stall_analyzer.vocabulary import CHECK_OPS, INPUT_OPS

FOLLOW = 1000  # not a cause: look into the executor run

# Starting a graph that exists takes microseconds; a first start that takes longer optimises and
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


def thread_tiling(trace: Trace, training: TrainingThread, begin: int, end: int) -> Tiling:
    """Cause codes (or FOLLOW) of the training thread over [begin, end) of trace time."""
    span = rows_of_line(trace, training.line)
    events = trace.events
    labels = _labels(trace, training, span)
    pieces = innermost(
        events.start_ps[span],
        events.duration_ps[span],
        np.where(events.parent[span] >= 0, events.parent[span] - span.start, -1).astype(np.int32),
        events.line[span],
    )
    label = labels[pieces.owner]
    label = _with_instantiation(trace, span, pieces, label)
    label = _with_retracing(trace, training, pieces, label)
    layers = [
        Layer(pieces.start[label == value], pieces.end[label == value], int(value))
        for value in np.unique(label)
        if value != NOTHING
    ]
    return paint(begin, end, layers, default=code("host.python"))


def _labels(trace: Trace, training: TrainingThread, span: slice) -> Int64s:
    """The label of each event of the line, own or inherited."""
    events = trace.events
    name = events.name[span]
    parent = np.where(events.parent[span] >= 0, events.parent[span] - span.start, -1)
    parent = parent.astype(np.int32)
    strong_names, weak_names = _by_name(trace)
    strong = strong_names[name]

    functions = rows_with(trace, "tf_function_call").astype(np.int64)
    functions = functions[(functions >= span.start) & (functions < span.stop)]
    traced = text_is(trace, "tf_function_call", functions, lambda t: t.startswith("traced"))
    strong[functions - span.start] = np.where(
        traced, code("compile.tracing"), code("host.dispatch")
    )
    weak = weak_names[name]
    is_run = _named(trace, KERNEL_RUNS)[name]
    around = inherit(strong, parent)
    followed = is_run & np.isin(events.start_ps[span], training.runs.start_ps)
    followed &= around != code("compile.variable_init")
    strong[followed] = FOLLOW
    # An eager op inside tracing is part of tracing; elsewhere it speaks for itself.
    compiling = np.isin(inherit(strong, parent), codes_of_bucket("compile"))
    own = np.where(strong != NOTHING, strong, np.where(compiling, NOTHING, weak))
    # Inside an eager op, the kernel computes and the rest is the host's work of starting it.
    around = inherit(own, parent)
    own[is_run & (own == NOTHING) & (around == code("host.eager"))] = code("compute.eager_op")
    return inherit(own, parent)


def _by_name(trace: Trace) -> tuple[Int64s, Int64s]:
    """For each name: the label that overrules what is around it, and the one that does not."""
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
        elif name == "TFE_DeleteTensorHandle":  # has a row only when it is slow
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


def _named(trace: Trace, wanted: frozenset[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.fromiter((name in wanted for name in trace.names), np.bool_, len(trace.names))


def _with_instantiation(trace: Trace, span: slice, pieces: Segments, label: Int64s) -> Int64s:
    """Before its kernel runs for the first time, a graph is optimised and instantiated."""
    events = trace.events
    is_graph = np.fromiter(
        (n.startswith(FUNCTION_PREFIX) for n in trace.names), np.bool_, len(trace.names)
    )
    graphs = np.flatnonzero(is_graph[events.name[span]])
    _, first = np.unique(events.name[span][graphs], return_index=True)
    graphs = graphs[first]
    kernel_start = np.full(span.stop - span.start, -1, dtype=np.int64)
    kernels = np.flatnonzero(_named(trace, frozenset({"EagerKernelExecute"}))[events.name[span]])
    around = events.parent[span][kernels] - span.start
    kernel_start[around[around >= 0]] = events.start_ps[span][kernels[around >= 0]]
    slow = kernel_start[graphs] - events.start_ps[span][graphs] > INSTANTIATE_FROM_PS
    until = np.full(span.stop - span.start, -1, dtype=np.int64)
    until[graphs[slow]] = kernel_start[graphs[slow]]
    before_kernel = (label == code("host.dispatch")) & (pieces.end <= until[pieces.owner])
    return np.where(before_kernel, code("compile.instantiate"), label)


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
    if len(start) == 0:
        return label
    index = np.searchsorted(start, pieces.start, side="right") - 1
    inside = (index >= 0) & (pieces.start < end[np.maximum(index, 0)])
    tracing = label == code("compile.tracing")
    return np.where(inside & tracing, code("compile.retracing"), label)
