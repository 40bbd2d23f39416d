"""The functions that the training thread calls: when their code was built, and what that cost.

Keras's training and validation steps share a name and are distinguished by the backward pass. What
changed between two traces (a shape, a dtype, a Python argument) is not in a trace; only the order
of the calls hints at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from stall_analyzer.align.traced_steps import calls_that_train
from stall_analyzer.align.training_thread import INITIALIZER_PREFIX
from stall_analyzer.decode.vocabulary import KERAS_STEPS, PREDICT_STEPS
from stall_analyzer.model.causes import codes, codes_of_bucket
from stall_analyzer.model.columns import median
from stall_analyzer.model.intervals import Tiling, times_in
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace_rows import name_of, rows_beginning, rows_called, stat_of
from stall_analyzer.model.units import PS_PER_MS, Int64s
from stall_analyzer.signals.compile.graph_shape import GraphShape, graph_shape

# What a call may contain besides its own work.
IN_CALLS = (
    codes("compile.tracing", "compile.retracing"),
    codes("compile.instantiate"),
    codes("compile.variable_init"),
    codes("compile.xla"),
    codes_of_bucket("input"),
)
# A call in which the compiler worked for less than this only looked up its code.
XLA_LEAST_PS = PS_PER_MS


@dataclass(frozen=True)
class Build:
    """A call in which code was built; its costs are those in the ledger for that call."""

    call: int  # which call of the function, from 0
    start_ps: int  # window time
    duration_ps: int  # without waiting for input
    traced: bool  # otherwise, XLA only compiled it
    new_function: bool  # traced as the first call of a new tf.function of the same name
    tracing_ps: int
    instantiate_ps: int
    variable_init_ps: int
    xla_ps: int
    # A function that creates variables in its first call is traced with them, then without.
    first_trace_ps: int
    second_trace_ps: int  # 0 where it was traced once
    other_function: bool = False  # of the same name: the step of another model

    @property
    def made_ps(self) -> int:
        """Tracing it and preparing it to run."""
        return self.tracing_ps + self.instantiate_ps

    @property
    def spare_trace_ps(self) -> int:
        """What is saved at most if it creates no variables: all tracing but the shorter trace."""
        twice = self.second_trace_ps > 0
        return self.tracing_ps - min(self.first_trace_ps, self.second_trace_ps) if twice else 0


@dataclass(frozen=True)
class FunctionSignals:
    """One Python function, as the training thread called it in the window."""

    name: str
    trains: bool
    calls: int
    builds: tuple[Build, ...]  # in order
    graphs: tuple[str, ...]  # the concrete functions that ran, in order of their first call
    usual_call_ps: int  # median of the calls that built nothing, 0 without any
    shape: GraphShape | None = None  # of the function that trains

    @property
    def is_keras(self) -> bool:
        return self.name in KERAS_STEPS

    @property
    def words(self) -> str:
        """What to call it: Keras's own names mean nothing to its users."""
        if not self.is_keras:
            return f"{self.name}()"
        if self.name in PREDICT_STEPS:
            return "the Keras prediction step"
        return "the Keras training step" if self.trains else "the Keras validation step"

    @property
    def opening(self) -> str:
        """The same at the beginning of a sentence."""
        return "T" + self.words[1:] if self.is_keras else self.words

    @property
    def first(self) -> Build | None:
        """The build that no change can avoid, if it is in the window."""
        return self.builds[0] if self.builds and self.builds[0].call == 0 else None

    @property
    def retraces(self) -> tuple[Build, ...]:
        return tuple(b for b in self.builds if b.traced and b.call > 0 and not b.other_function)

    @property
    def recompilations(self) -> tuple[Build, ...]:
        """XLA's work in calls after the first."""
        later = (b for b in self.builds if b.call > 0 and not b.other_function)
        return tuple(b for b in later if b.xla_ps >= XLA_LEAST_PS)

    def extra_ps(self, build: Build) -> int:
        """How much longer than usual the call took; new code is also slow in its first run."""
        return max(build.duration_ps - self.usual_call_ps, build.made_ps + build.xla_ps)

    def only_last_call(self, builds: Sequence[Build]) -> bool:
        """Whether all of them happened in the very last call: a smaller last batch does that."""
        return len(builds) == 1 and self.calls > 2 and builds[0].call == self.calls - 1


@dataclass(frozen=True)
class _Call:
    """A call of a tf.function on the training thread."""

    function: str
    trains: bool
    graph: str
    start_ps: int
    duration_ps: int
    build: Build | None


def function_signals(traces: Sequence[AlignedTrace], ledger: Tiling) -> tuple[FunctionSignals, ...]:
    """Functions called in the window, the one that takes most time first."""
    calls = [call for aligned in traces for call in _calls(aligned, ledger)]

    def function_of(call: _Call) -> tuple[str, bool]:
        return call.function, call.trains

    groups = [
        (name, trains, sorted(members, key=lambda call: call.start_ps))
        for (name, trains), members in groupby(sorted(calls, key=function_of), key=function_of)
    ]
    groups.sort(key=lambda group: -sum(call.duration_ps for call in group[2]))
    shape = graph_shape(traces)
    main = next((number for number, group in enumerate(groups) if group[1]), None)
    return tuple(
        _function(name, trains, members, shape if number == main else None)
        for number, (name, trains, members) in enumerate(groups)
    )


def _function(
    name: str, trains: bool, calls: Sequence[_Call], shape: GraphShape | None
) -> FunctionSignals:
    usual = [call.duration_ps for call in calls if call.build is None]
    return FunctionSignals(
        name=name,
        trains=trains,
        calls=len(calls),
        builds=tuple(
            replace(call.build, call=number, other_function=_is_another(name, calls, number))
            for number, call in enumerate(calls)
            if call.build is not None
        ),
        graphs=tuple(dict.fromkeys(call.graph for call in calls if call.graph)),
        usual_call_ps=int(median(usual)) if usual else 0,
        shape=shape,
    )


def _is_another(name: str, calls: Sequence[_Call], number: int) -> bool:
    """Whether this call is the first of a function used alongside an earlier one, as with the steps
    of two models. Keras creates a new one for a model, or when it is compiled; never in a loop."""
    build = calls[number].build
    if build is None or not build.new_function:
        return False
    before = {call.graph for call in calls[:number] if call.graph}
    return name in KERAS_STEPS or any(call.graph in before for call in calls[number + 1 :])


def _calls(aligned: AlignedTrace, ledger: Tiling) -> list[_Call]:
    """Calls that begin inside what the trace covers of the window."""
    trace, training = aligned.trace, aligned.training
    if training is None or len(ledger.labels) == 0:
        return []
    calls = training.calls
    start, end = calls.start_ps + aligned.shift_ps, calls.end_ps + aligned.shift_ps
    tracing, instantiate, variables, xla, waits = times_in(ledger, start, end, IN_CALLS)
    counts = stat_of(trace, "tracing_count", calls.row)
    trains = calls_that_train(trace, training)
    first, second = _traced_twice(aligned)

    found: list[_Call] = []
    seen: dict[tuple[str, bool], int] = {}
    for i in range(len(calls.row)):
        if not aligned.covered_ps[0] <= start[i] < aligned.covered_ps[1]:
            continue
        name = name_of(trace, int(calls.row[i]))
        build = None
        if calls.traced[i] or xla[i] >= XLA_LEAST_PS:
            key = name, bool(trains[i])
            # A function may create variables only in its first call, and is then traced twice.
            counted_on = int(counts[i]) > seen.get(key, 0) and not second[i]
            build = Build(
                call=0,  # counted later, over all sessions
                start_ps=int(start[i]),
                duration_ps=int(end[i] - start[i] - waits[i]),
                traced=bool(calls.traced[i]),
                new_function=bool(calls.traced[i]) and key in seen and not counted_on,
                tracing_ps=int(tracing[i]),
                instantiate_ps=int(instantiate[i]),
                variable_init_ps=int(variables[i]),
                xla_ps=int(xla[i]),
                first_trace_ps=int(first[i]),
                second_trace_ps=int(second[i]),
            )
            seen[key] = int(counts[i])
        graph = trace.names[calls.concrete[i]] if calls.concrete[i] >= 0 else ""
        graph, length = graph.removeprefix("EagerLocalExecute: "), int(end[i] - start[i])
        found.append(_Call(name, bool(trains[i]), graph, int(start[i]), length, build))
    return found


def _traced_twice(aligned: AlignedTrace) -> tuple[Int64s, Int64s]:
    """For each call, how long a function in it was traced before and after creating variables."""
    trace, training = aligned.trace, aligned.training
    assert training is not None
    events, calls = trace.events, training.calls
    first, second = np.zeros((2, len(calls.row)), dtype=np.int64)
    builds = rows_called(trace, "tf.function-graph_building")
    for row in rows_beginning(trace, INITIALIZER_PREFIX):
        call = int(np.searchsorted(calls.row, row, side="right")) - 1
        if events.line[row] != training.line or call < 0:
            continue
        # initializer < EagerExecute < the function that is being traced
        function = events.parent[events.parent[row]] if events.parent[row] >= 0 else -1
        mine = builds[events.parent[builds] == function] if function >= 0 else builds[:0]
        before = mine[events.end_ps[mine] <= events.start_ps[row]]
        after = mine[events.start_ps[mine] >= events.end_ps[row]]
        if len(before) and len(after):
            first[call] += events.duration_ps[before].sum()
            second[call] += events.duration_ps[after].sum()
    return first, second
