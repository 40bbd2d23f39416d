"""What logging the loss of every batch cost the training thread.

Anyone who captures a first epoch is asked to log it, so this is a cost of the measurement, not of
the program. Each scalar is a handful of eager ops and the Python around them. The event files show
which of the writing ops were ours: TensorFlow timestamps a record while its op runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stall_analyzer.align.traced_steps import eager_rows
from stall_analyzer.attribute.refine import relabel_inside
from stall_analyzer.attribute.thread import EAGER_PREFIX
from stall_analyzer.model.causes import codes
from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import EventLog, Series
from stall_analyzer.model.intervals import Tiling
from stall_analyzer.model.timeline import AlignedTrace, Timeline, TrainingThread
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import name_of, names_where
from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS, PS_PER_US, Bools, Int64s

# How the tags of Keras's TensorBoard callback begin. A loop that logs `batch_loss` does the same.
OUR_TAGS = ("batch_", "epoch_", "evaluation_")
WRITES = frozenset({"WriteSummary", "WriteScalarSummary"})
FLUSH = "FlushSummaryWriter"
VALUE = "_EagerConst"
BY_KERAS = "epoch_"
# What tf.summary.scalar runs before it writes: the value, the step, whether to record at all.
PREPARES = frozenset({"_EagerConst", "Cast", "Identity", "LogicalAnd", "ReadVariableOp"})
# Python between two ops of a scalar takes a tenth of this. Longer gaps are something else.
SAME_SCALAR_GAP_PS = PS_PER_MS
# Inside a scalar, it may have had to wait for the interpreter: each other thread may keep it for 5
# ms (sys.getswitchinterval).
INSIDE_SCALAR_GAP_PS = SAME_SCALAR_GAP_PS + 5 * PS_PER_MS
# This much of the Python around a single scalar belongs to it.
LONE_GAP_PS = 250 * PS_PER_US
# Records have timestamps in microseconds, on the trace's clock.
STAMP_ERROR_PS = 100 * PS_PER_US
HOST = codes("host.python", "host.eager", "host.summary")


def with_logging(
    tiling: Tiling, aligned: AlignedTrace, training: TrainingThread, timeline: Timeline
) -> Tiling:
    """Scalars that we ask for, with the Python around them, become `profiler.logging`."""
    trace = aligned.trace
    rows = eager_rows(trace, training, lambda _: True)
    if len(rows) == 0:
        return tiling
    logs = _logs(trace, rows, _times_of_records(timeline, aligned), timeline.events)
    if timeline.events is not None and any(
        tag.startswith(BY_KERAS) for tag in timeline.events.train
    ):
        logs |= _not_recorded(trace, rows, training)
    ours = rows[logs]
    if len(ours) == 0:
        return tiling
    start, end = _with_gaps(trace, training, rows, ours)
    return relabel_inside(tiling, start, end, HOST, "profiler.logging")


def _times_of_records(timeline: Timeline, aligned: AlignedTrace) -> Int64s:
    """When our scalars were written, in trace time."""
    begin_ns = timeline.window.start_unix_ns
    if timeline.events is None or begin_ns is None:
        return np.empty(0, dtype=np.int64)
    series = [s.wall_ns for tag, s in _scalars(timeline.events) if tag.startswith(OUR_TAGS)]
    wall_ns = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *series]))
    return np.asarray((wall_ns - begin_ns) * PS_PER_NS - aligned.shift_ps, dtype=np.int64)


def _scalars(events: EventLog) -> Iterator[tuple[str, Series]]:
    yield from events.train.items()
    yield from events.validation.items()


def _logs(trace: Trace, rows: Int64s, records: Int64s, events: EventLog | None) -> Bools:
    """Which eager ops belong to one of our scalars."""
    op = [trace.names[name].removeprefix(EAGER_PREFIX) for name in trace.events.name[rows]]
    writes = np.array([name in WRITES for name in op], dtype=np.bool_)
    flushes = np.array([name == FLUSH for name in op], dtype=np.bool_)
    prepares = np.array([name in PREPARES for name in op], dtype=np.bool_)
    ours = writes.copy()
    ours[writes] = _hold_a_record(trace, rows[writes], records, events)
    # An op that prepares a write belongs to the next write, a flush to the previous one.
    other = np.where(prepares, len(op), np.arange(len(op)))
    following = np.minimum.accumulate(other[::-1])[::-1]
    written = np.maximum.accumulate(np.where(writes, np.arange(len(op)), -1))
    belongs = np.append(ours, False)
    return np.asarray(ours | (prepares & belongs[following]) | (flushes & belongs[written]))


def _not_recorded(trace: Trace, rows: Int64s, training: TrainingThread) -> Bools:
    """Keras's callback turns every batch's loss into a tensor, whether or not it is then written:
    the last op before the next call."""
    is_value = names_where(trace, f"{EAGER_PREFIX}{VALUE}".__eq__)[trace.events.name[rows]]
    other = np.where(is_value, len(rows), np.arange(len(rows)))
    following = np.minimum.accumulate(other[::-1])[::-1]
    start, calls = trace.events.start_ps[rows], training.calls.start_ps
    next_op = np.append(start, 1 << 62)[following]
    next_call = np.append(calls, 1 << 62)[np.searchsorted(calls, start)]
    after_a_call = np.searchsorted(calls, start) > 0
    return np.asarray(is_value & after_a_call & (next_call < next_op))


def _hold_a_record(trace: Trace, writes: Int64s, records: Int64s, events: EventLog | None) -> Bools:
    """Which of the ops wrote one of our scalars. If the clocks do not agree, tags decide for
    all."""
    start = trace.events.start_ps[writes] - STAMP_ERROR_PS
    end = trace.events.end_ps[writes] + STAMP_ERROR_PS
    held = np.searchsorted(records, end) > np.searchsorted(records, start)
    if held.any():
        return np.asarray(held)
    tags = [] if events is None else [tag for tag, _ in _scalars(events)]
    by_batch = any(tag.startswith("batch_") for tag in tags)
    return np.full(len(writes), by_batch and all(tag.startswith(OUR_TAGS) for tag in tags))


def _with_gaps(
    trace: Trace, training: TrainingThread, rows: Int64s, ours: Int64s
) -> tuple[Int64s, Int64s]:
    """The ops and the Python between them; before the first and after the last, as much as usual.
    The first scalar of a process loads the modules that write it. If the callback's writer was at
    work just before, that time cannot belong to anything else.
    """
    events, calls = trace.events, training.calls
    start, end = events.start_ps[ours], events.end_ps[ours]
    ends = np.sort(np.append(events.end_ps[rows], calls.end_ps))
    starts = np.sort(np.append(events.start_ps[rows], calls.start_ps))
    since = start - np.append(0, ends)[np.searchsorted(ends, start, side="right")]
    until = np.append(starts, 1 << 62)[np.searchsorted(starts, end)] - end
    follows = np.zeros(len(ours), dtype=np.bool_)
    ends_one = names_where(trace, _is_writers)[events.name[ours[:-1]]]
    longest = np.where(ends_one, SAME_SCALAR_GAP_PS, INSIDE_SCALAR_GAP_PS)
    follows[1:] = (start[1:] - end[:-1] == since[1:]) & (since[1:] <= longest)
    first = int(np.searchsorted(rows, ours[0]))
    follows[0] = first > 0 and _is_writers(name_of(trace, int(rows[first - 1])))
    usual = int(median(since[follows])) if follows[1:].any() else LONE_GAP_PS
    goes_on = np.append(follows[1:], False)
    before = np.where(follows, since, np.minimum(since, usual))
    return start - before, end + np.where(goes_on, until, np.minimum(until, usual))


def _is_writers(name: str) -> bool:
    op = name.removeprefix(EAGER_PREFIX)
    return op == FLUSH or op in WRITES
