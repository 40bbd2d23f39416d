"""What the training thread does while no graph of its own runs.

Between two calls of a train function there is only Python: Keras, callbacks, the user's loop. Most
of it leaves no event. The rest is recognized by its eager ops: those that write summaries or
checkpoints are named after that, and a series of variable reads without anything else is how Keras
saves a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from stall_analyzer.align.traced_steps import eager_rows
from stall_analyzer.attribute.thread import CHECKPOINT_OPS, EAGER_PREFIX, SUMMARY_OPS
from stall_analyzer.model.causes import CAUSES, codes
from stall_analyzer.model.intervals import Tiling, covered, time_in, union
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace_rows import name_of
from stall_analyzer.model.units import PS_PER_MS, Bools, Int64s
from stall_analyzer.signals.host.python_calls import PythonCall, python_calls

# Ops of one piece of work follow each other closely; a gap this long is something else.
SAME_WORK_GAP_PS = 5 * PS_PER_MS
# Between the ops of long work, such as a histogram of millions of weights, Python takes longer.
SAME_WORK_GAP_SHARE = 0.2
# Keras itself reads a variable now and then (the learning rate, a counter), but never this many in
# a row.
SAVED_FROM_READS = 4
# The last two create the small variables in which Keras keeps the state of its file.
SAVING_OPS = frozenset({"ReadVariableOp", "Identity", "Cast", "VarHandleOp", "AssignVariableOp"})
# Eager ops that make scalars, histograms and names of checkpoint files. Any other op near a summary
# belongs to something else, such as a callback that calls the model.
WRITING_OPS = frozenset(
    {"_EagerConst", "AddV2", "BroadcastArgs", "BroadcastTo", "Cast", "ConcatV2", "Equal",
     "ExpandDims", "Floor", "GreaterEqual", "Identity", "LessEqual", "LogicalAnd", "LogicalOr",
     "Max", "Maximum", "Min", "Minimum", "Mul", "NoOp", "OneHot", "Pack", "Range",
     "ReadVariableOp", "RealDiv", "Reshape", "Select", "SelectV2", "Shape", "Slice",
     "StaticRegexFullMatch", "StopGradient", "StridedSlice", "StringJoin", "Sub", "Sum",
     "Transpose", "ZerosLike", "VarIsInitializedOp", "DisableCopyOnRead"}
) | SUMMARY_OPS | CHECKPOINT_OPS  # fmt: skip
EVERYTHING = codes(*CAUSES)
TRACING = codes("compile.tracing", "compile.retracing")
PYTHON = codes("host.python", "host.eager", "host.callback")
HOST = codes("host.python", "host.eager", "host.callback", "host.summary", "host.checkpoint")


@dataclass(frozen=True)
class Stretches:
    """One kind of work between steps, as disjoint intervals of window time."""

    start_ps: Int64s
    end_ps: Int64s
    per_pause_ps: Int64s  # host time in the ledger, for each pause that has any of it

    @property
    def host_ps(self) -> int:
        return int(self.per_pause_ps.sum())

    def __len__(self) -> int:
        """The number of pauses in which it was done."""
        return len(self.per_pause_ps)


@dataclass(frozen=True)
class SidePauses:
    """What callbacks or the loop did in each pause with the model or with other data."""

    whole_ps: Int64s  # all of it
    tracing_ps: Int64s  # building the graphs of its datasets, which happens again each time
    functions: tuple[str, ...]  # those called there, the most frequent first


@dataclass(frozen=True)
class BetweenSteps:
    """The pauses between calls of the training thread, in order."""

    start_ps: Int64s
    end_ps: Int64s
    unnamed_ps: Int64s  # in each pause: Python that is neither saving nor writing summaries
    side: SidePauses
    recurs: Bools  # False before the first two calls, where Keras sets itself up
    saves: Stretches
    named_saves: bool  # the ops that write a checkpoint were seen, not only the reads
    summaries: Stretches
    python_calls: tuple[PythonCall, ...]  # most self time first


EMPTY = np.empty(0, dtype=np.int64)
NO_STRETCHES = Stretches(EMPTY, EMPTY, EMPTY)
NO_PAUSES = BetweenSteps(
    EMPTY,
    EMPTY,
    EMPTY,
    SidePauses(EMPTY, EMPTY, ()),
    EMPTY.astype(np.bool_),
    NO_STRETCHES,
    False,
    NO_STRETCHES,
    (),
)


def between_steps(traces: Sequence[AlignedTrace], ledger: Tiling) -> BetweenSteps:
    """The pauses of all sessions, in order; a run that trains op by op has none."""
    telling = [a for a in traces if a.training is not None and not a.eager]
    telling.sort(key=lambda a: a.covered_ps)
    pauses = [_pauses(aligned) for aligned in telling]
    start = np.concatenate([EMPTY, *(begin for begin, _ in pauses)])
    end = np.concatenate([EMPTY, *(finish for _, finish in pauses)])
    if len(start) == 0:
        return NO_PAUSES
    largest = max(telling, key=lambda a: a.covered_ps[1] - a.covered_ps[0])
    work = [piece for aligned in telling for piece in _eager_work(aligned)]
    named = [w for w in work if w.kind == "checkpoint"]
    reads = [w for w in work if w.kind == "reads"]
    saves = _stretches(ledger, start, [*named, *reads])
    summaries = _stretches(ledger, start, [w for w in work if w.kind == "summary"])
    known = union(
        np.concatenate([saves.start_ps, summaries.start_ps]),
        np.concatenate([saves.end_ps, summaries.end_ps]),
    )
    unnamed = time_in(ledger, start, end, PYTHON) - _per_pause(ledger, start, *known, PYTHON)
    return BetweenSteps(
        start_ps=start,
        end_ps=end,
        unnamed_ps=unnamed,
        side=_side_pauses(telling, ledger, start),
        recurs=np.arange(len(start)) >= 2,
        saves=saves,
        named_saves=bool(named),
        summaries=summaries,
        python_calls=python_calls(largest, ledger, PYTHON),
    )


def _pauses(aligned: AlignedTrace) -> tuple[Int64s, Int64s]:
    """The pauses before, between and after the calls, in the traced part of the window."""
    assert aligned.training is not None
    begin, end = aligned.covered_ps
    calls, own = aligned.training.calls, ~aligned.training.side.calls
    called = np.clip(calls.start_ps[own] + aligned.shift_ps, begin, end)
    returned = np.clip(calls.end_ps[own] + aligned.shift_ps, begin, end)
    inside = returned > called
    if not inside.any():
        return EMPTY, EMPTY
    return np.append(begin, returned[inside]), np.append(called[inside], end)


def _side_pauses(traces: Sequence[AlignedTrace], ledger: Tiling, pauses: Int64s) -> SidePauses:
    whole, tracing = np.zeros((2, len(pauses)), dtype=np.int64)
    called: Counter[str] = Counter()
    for aligned in traces:
        assert aligned.training is not None
        calls, side, shift = aligned.training.calls, aligned.training.side, aligned.shift_ps
        spans = side.start_ps + shift, side.end_ps + shift
        start, end = aligned.training.around_side_calls
        whole += _per_pause(ledger, pauses, *spans, EVERYTHING)
        tracing += _per_pause(ledger, pauses, start + shift, end + shift, TRACING)
        called.update(name_of(aligned.trace, int(row)) for row in calls.row[side.calls])
    return SidePauses(whole, tracing, tuple(name for name, _ in called.most_common()))


# ---------------------------------------------------------------- work that eager ops show


@dataclass(frozen=True)
class _EagerWork:
    """Eager ops that belong together."""

    kind: str  # "summary" | "checkpoint" | "reads"
    start_ps: int
    end_ps: int


def _eager_work(aligned: AlignedTrace) -> Iterator[_EagerWork]:
    trace, training = aligned.trace, aligned.training
    assert training is not None
    window_start, window_end = (bound - aligned.shift_ps for bound in aligned.covered_ps)
    rows = eager_rows(trace, training, lambda _: True)
    at = trace.events.start_ps[rows]
    beside = covered(at, training.side.start_ps, training.side.end_ps)
    rows = rows[(at >= window_start) & (at < window_end) & ~beside]
    at, until = trace.events.start_ps[rows], trace.events.end_ps[rows]
    starts = training.calls.start_ps[~training.side.calls]
    calls = np.append(starts[starts < window_end], window_end)
    in_pause = np.minimum(calls.searchsorted(at, "right"), len(calls) - 1)
    ops = [trace.names[name].removeprefix(EAGER_PREFIX) for name in trace.events.name[rows]]
    saving = _in_long_reads(ops, in_pause).tolist()
    writes = [op in WRITING_OPS for op in ops]
    begins, ends, pause = [*at.tolist(), int(calls[-1])], until.tolist(), in_pause.tolist()
    first = 0
    for index in range(1, len(rows) + 1):
        if (
            index < len(rows)
            and pause[index] == pause[first]
            and saving[index] == saving[first]
            and writes[index] == writes[first]
            and (saving[first] or _goes_on(begins[first], ends[index - 1], begins[index]))
        ):
            continue
        kind = "reads" if saving[first] else _kind(ops[first:index])
        if kind:
            begin, end = begins[first], max(ends[first:index])
            if kind == "reads":  # until something else begins, the files are being written
                end = min(begins[index], int(calls[pause[first]]))
            if kind != "summary" and first and pause[first - 1] == pause[first]:
                # Python opens files and lists what goes into them; that takes less than writing.
                begin = max(ends[first - 1], 2 * begin - end)
            yield _EagerWork(kind, begin + aligned.shift_ps, end + aligned.shift_ps)
        first = index


def _goes_on(begin: int, until: int, at: int) -> bool:
    """Whether an op that starts at `at` belongs to the work from `begin` to `until`."""
    return at - until <= max(SAME_WORK_GAP_PS, SAME_WORK_GAP_SHARE * (until - begin))


def _in_long_reads(ops: list[str], pause: Int64s) -> Bools:
    """Which ops belong to a series of variable reads long enough to be a model being saved."""
    reads = np.array([op in SAVING_OPS for op in ops], dtype=np.bool_)
    fresh = np.ones(len(ops), dtype=np.bool_)
    fresh[1:] = (reads[1:] != reads[:-1]) | (pause[1:] != pause[:-1])
    row = np.cumsum(fresh) - 1
    variables = np.array([op == "ReadVariableOp" for op in ops], dtype=np.int64)
    count = np.bincount(row, weights=variables, minlength=1)
    return np.asarray(reads & (count[row] >= SAVED_FROM_READS), dtype=np.bool_)


def _kind(ops: list[str]) -> str:
    if not CHECKPOINT_OPS.isdisjoint(ops):
        return "checkpoint"
    return "" if SUMMARY_OPS.isdisjoint(ops) else "summary"


def _stretches(ledger: Tiling, pauses: Int64s, work: list[_EagerWork]) -> Stretches:
    start, end = union(
        np.array([w.start_ps for w in work], dtype=np.int64),
        np.array([w.end_ps for w in work], dtype=np.int64),
    )
    per_pause = _per_pause(ledger, pauses, start, end, HOST)
    return Stretches(start, end, per_pause[per_pause > 0])


def _per_pause(
    ledger: Tiling, pauses: Int64s, start: Int64s, end: Int64s, wanted: Int64s
) -> Int64s:
    """How much time of the wanted causes the stretches hold, in each pause."""
    spent = time_in(ledger, start, end, wanted)
    pause = np.clip(np.searchsorted(pauses, start, side="right") - 1, 0, len(pauses) - 1)
    sums = np.zeros(len(pauses), dtype=np.int64)
    np.add.at(sums, pause, spent)
    return sums
