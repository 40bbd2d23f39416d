"""The input pipeline as it ran: its stages, and which of them kept training waiting.

tf.data rewrites what the user wrote, so only what the trace shows counts. Every stage writes an
event whose name is its path, `Iterator::Root::Prefetch::Map`; a stage contains the stages it reads
from. The time that a stage takes beyond them is its own. That holds across threads, too: a parallel
map whose source is always ready is slow itself; one whose source is always busy waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from stall_analyzer.attribute.contention import pipeline_lines, python_rows
from stall_analyzer.decode.vocabulary import op_type
from stall_analyzer.model.columns import median
from stall_analyzer.model.intervals import Tiling, covered, time_in, union
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import (
    ABSENT,
    rows_called,
    rows_numbered,
    stat_of,
    text_of,
)
from stall_analyzer.model.units import Int64s
from stall_analyzer.signals.input.side_pipelines import side_stages

Rows = tuple[AlignedTrace, Int64s]  # events of a trace
Spans = tuple[Int64s, Int64s]  # disjoint intervals in order, in window time
INSIDE = np.array([0])  # labels
NEVER: Spans = (np.empty(0, np.int64), np.empty(0, np.int64))

ITERATOR = "Iterator::"
ROOTS = (f"{ITERATOR}Root", f"{ITERATOR}Model")  # the latter until TensorFlow 2.6
MAKE_ITERATOR = "EagerLocalExecute: MakeIterator"
EXECUTOR = "ExecutorState::Process"
PARAMETERS = ("buffer_size", "batch_size", "parallelism", "num_parallel_calls", "cycle_length",
              "buffered_elements")  # fmt: skip
CACHE_INSIDE = "CacheImpl"  # a cache writes two events for an element, one inside the other
# Stages that pass elements on without doing any work.
PASSING = frozenset({"Root", "Prefetch", "Model", "Options", "MaxIntraOpParallelism",
                     "PrivateThreadPool"})  # fmt: skip
WORK_AHEAD = ("Prefetch", "Parallel", "LegacyParallel", "MapAndBatch")
GENERATOR_ALONE = PASSING | {"FlatMap", "Generator", "FromTensor"}
# Short events have no rows. If rows hold less than this share of a stage's time, the stage around
# it says when it ran.
ROWS_TELL = 0.5


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage, over all its iterators. Totals are over all traces, including short events."""

    path: str  # "Root::Prefetch::Map", without the numbers of inner iterators
    kind: str  # "Map", "ParallelMapV2", "Generator" …
    name: str  # numbered as in the user's program, "MapDataset:3"; empty if tf.data added it
    parameters: Mapping[str, int]
    count: int
    iterators: int  # inner iterators, e.g. one per file
    total_ps: int
    spans: Spans  # when it had been asked for an element and had not yet given it
    seen_share: float  # the share of total_ps that the spans hold

    @property
    def label(self) -> str:
        """Its name in the user's program; the first, if fused: `fused(MapDataset:2,…)`."""
        return self.name.removeprefix("fused(").partition(",")[0] or self.kind

    @property
    def parent(self) -> str:
        return self.path.rpartition("::")[0]


@dataclass(frozen=True)
class OpTime:
    """How often an op ran inside a stage, and for how long."""

    count: int
    total_ps: int


@dataclass(frozen=True)
class PipelineSignals:
    """The stages that ran, outermost first, and what the functions of their maps did."""

    stages: tuple[Stage, ...] = ()
    python_ps: int = 0  # Python in maps and generators, added up over threads
    functions_ps: int = 0  # graphs that maps and generators ran, added up over threads
    functions_spans: Spans = NEVER  # when any of them ran
    ops: Mapping[str, OpTime] = field(default_factory=dict)  # by op type, of the whole trace
    made_ps: tuple[int, ...] = ()  # when iterators were created, in window time
    cores: int | None = None  # how many tf.data may use

    def of_kind(self, *kinds: str) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.kind.startswith(kinds))

    def around(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages that read from this one, directly or through others."""
        return tuple(s for s in self.stages if stage.path.startswith(s.path + "::"))

    def below(self, stage: Stage) -> tuple[Stage, ...]:
        return tuple(s for s in self.stages if s.path.startswith(stage.path + "::"))

    @property
    def busy_spans(self) -> Spans:
        """When any stage was at work, or a function of one."""
        working = [stage.spans for stage in self.stages if stage.kind not in PASSING]
        working.append(self.functions_spans)
        return union(*(np.concatenate(bounds) for bounds in zip(*working, strict=True)))

    def produce_ps(self, through: Stage | None = None) -> int:
        """How long a batch takes to produce: the time of the outermost stage that does any work.

        A run may have several pipelines (training, validation). This is about the one that contains
        the stage `through`, or the one that takes most time.
        """
        working = [s for s in self.stages if s.kind not in PASSING]
        outermost = [s for s in working if not any(w in working for w in self.around(s))]
        mine = [s for s in outermost if through in (s, *self.below(s))] or outermost
        if not mine:
            return 0
        stage = max(mine, key=lambda s: s.total_ps)
        return stage.total_ps // max(stage.count, 1)

    @property
    def works_ahead(self) -> bool:
        """Whether anything is produced while the step runs.

        The queue of a PyDataset with several workers cannot be seen: it looks like a generator.
        """
        alone = all(stage.kind in GENERATOR_ALONE for stage in self.stages)
        return alone or bool(self.of_kind(*WORK_AHEAD))

    def held_up_ps(self, during: Spans) -> dict[str, int]:
        """Per path: for how much of `during` the stage owed an element that it was asked for."""
        held: dict[str, int] = {}
        by_path = {stage.path: stage for stage in self.stages}
        inside = inside_of(during)
        for stage in self.stages:
            seen = overlap_ps(stage.spans, inside)
            around = by_path.get(stage.parent)
            if stage.seen_share < ROWS_TELL and around is not None and around.total_ps:
                seen = round(held[around.path] * min(stage.total_ps / around.total_ps, 1))
            held[stage.path] = seen
        return held

    def own_ps(self, during: Spans) -> dict[str, int]:
        """Per path: the same, without the time in which stages below it owed an element."""
        held = self.held_up_ps(during)
        below = dict.fromkeys(held, 0)
        for stage in self.stages:
            if stage.parent in below:
                below[stage.parent] += held[stage.path]
        return {path: max(ps - below[path], 0) for path, ps in held.items()}


def pipeline_signals(traces: Sequence[AlignedTrace]) -> PipelineSignals:
    """What the traces of one host show of its input; a capture has several windows of one run."""
    stages = _stages(traces)
    if not stages:
        return PipelineSignals()
    python = [(a, _of_pipeline(a.trace, python_rows(a.trace))) for a in traces]
    runs = [(a, _of_pipeline(a.trace, rows_called(a.trace, EXECUTOR))) for a in traces]
    made = [at for a in traces for at in _made_ps(a)]
    return PipelineSignals(
        stages=stages,
        python_ps=_duration_ps(python),
        functions_ps=_duration_ps(runs),
        functions_spans=_spans(runs),
        ops=_op_times(traces),
        made_ps=tuple(made),
        cores=max(filter(None, (cores_of(a.trace) for a in traces)), default=None),
    )


def _made_ps(aligned: AlignedTrace) -> list[int]:
    """When iterators were created, without those that callbacks create for themselves."""
    trace, training = aligned.trace, aligned.training
    at = trace.events.start_ps[rows_called(trace, MAKE_ITERATOR)]
    if training is not None:
        at = at[~covered(at, training.side.start_ps, training.side.end_ps)]
    return [int(moment) + aligned.shift_ps for moment in at]


def overlap_ps(spans: Spans, inside: Tiling) -> int:
    """How much of the spans lies inside of others."""
    return int(time_in(inside, *spans, INSIDE).sum())


def inside_of(spans: Spans) -> Tiling:
    """INSIDE of the spans, and something else between them."""
    bounds = np.stack(union(*spans), axis=1).ravel()
    return Tiling(bounds, np.arange(max(len(bounds) - 1, 0)) % 2)


def _stages(traces: Sequence[AlignedTrace]) -> tuple[Stage, ...]:
    paths: dict[str, list[tuple[AlignedTrace, list[int]]]] = {}
    for aligned in traces:
        mine: dict[str, list[int]] = {}
        others = side_stages(aligned, ROOTS)
        for index, name in enumerate(aligned.trace.names):
            if not name.startswith(ROOTS) or name.endswith(CACHE_INSIDE):
                continue
            # Short events have no rows, hence no id: what a side stage reads from is a side stage.
            if name not in others and not name.startswith(tuple(f"{o}::" for o in others)):
                mine.setdefault(_path(name), []).append(index)
        for path, names in mine.items():
            paths.setdefault(path, []).append((aligned, names))
    return tuple(_stage(path, paths[path]) for path in sorted(paths, key=_depth))


def _stage(path: str, parts: Sequence[tuple[AlignedTrace, list[int]]]) -> Stage:
    """`parts`: the traces that contain it, with the indices of its names there."""
    rows = [(a, rows_numbered(a.trace, names)) for a, names in parts]
    total = sum(int(a.trace.totals.total_ps[names].sum()) for a, names in parts)
    named = (text_of(a.trace, "name", int(mine[0])) for a, mine in rows if len(mine))
    name = next(named, "")
    return Stage(
        path=path,
        kind=path.rpartition("::")[2],
        name="" if name.startswith("inject/") else name,
        parameters=_parameters(rows),
        count=sum(int(a.trace.totals.count[names].sum()) for a, names in parts),
        iterators=len({a.trace.names[index] for a, names in parts for index in names}),
        total_ps=total,
        spans=_spans(rows),
        seen_share=_duration_ps(rows) / total if total else 1.0,
    )


def _path(name: str) -> str:
    """`Iterator::Root::FlatMap[0]::Generator` -> `Root::FlatMap::Generator`."""
    plain = re.sub(r"\[\d+\]", "", re.sub(r"^Iterator::(Root|Model)", "Root", name))
    return plain.replace("CacheImpl::", "Cache::")


def _depth(path: str) -> tuple[int, str]:
    return path.count("::"), path


def _parameters(rows: Sequence[Rows]) -> dict[str, int]:
    found = {}
    for stat in PARAMETERS:
        known = [(a.trace, mine) for a, mine in rows if stat in a.trace.stats]
        if not known:
            continue
        values = np.concatenate([stat_of(trace, stat, mine) for trace, mine in known])
        values = values[values != ABSENT]
        if len(values):
            found[stat] = int(median(values))  # autotuning changes them as it goes
    return found


def _spans(rows: Sequence[Rows]) -> Spans:
    start = [aligned.trace.events.start_ps[mine] + aligned.shift_ps for aligned, mine in rows]
    end = [aligned.trace.events.end_ps[mine] + aligned.shift_ps for aligned, mine in rows]
    return union(np.concatenate(start), np.concatenate(end))


def _duration_ps(rows: Sequence[Rows]) -> int:
    """Added up over threads."""
    return sum(int(aligned.trace.events.duration_ps[mine].sum()) for aligned, mine in rows)


def _of_pipeline(trace: Trace, rows: Int64s) -> Int64s:
    """Those on tf.data's threads."""
    return np.asarray(rows[pipeline_lines(trace)[trace.events.line[rows]]], dtype=np.int64)


def cores_of(trace: Trace) -> int | None:
    """tf.data records how many cores it may use, or how many threads it created for them."""
    for stat in ("cpu_budget", "threadpool_size"):
        column = trace.stats.get(stat)
        if column is not None and len(column.values):
            return int(column.values.max())
    return None


def _op_times(traces: Sequence[AlignedTrace]) -> dict[str, OpTime]:
    """Totals per op type, including ops of the step."""
    found: dict[str, tuple[int, int]] = {}
    for trace in (aligned.trace for aligned in traces):
        counts, totals_ps = trace.totals.count.tolist(), trace.totals.total_ps.tolist()
        for name, count, total_ps in zip(trace.names, counts, totals_ps, strict=True):
            kind = op_type(name)
            if kind and ": " not in name:
                before = found.get(kind, (0, 0))
                found[kind] = before[0] + count, before[1] + total_ps
    return {kind: OpTime(*sums) for kind, sums in found.items()}
