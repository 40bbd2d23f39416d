"""Traces and event files on one clock, with the first epoch's window: what `align` returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from stall_analyzer.model.columns import median
from stall_analyzer.model.console_log import ConsoleLog
from stall_analyzer.model.debug_dump import DebugDump
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.foreign import ForeignTrace
from stall_analyzer.model.intervals import difference
from stall_analyzer.model.kinds import ClockSource, Framework, PhaseName, StepPhase, StepSource
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.trace import Trace, TraceSource
from stall_analyzer.model.units import PS_PER_NS, Bools, Int32s, Int64s, UInt32s

OF_BACKENDS: dict[str, Framework] = {"jax": "jax", "torch": "pytorch"}  # Keras's names


@dataclass(frozen=True)
class FunctionRuns:
    """Runs of graph functions that the training thread waited for, ordered by id. `id` is the
    executor's step id, which every event that worked for the run has, on any thread.
    """

    id: Int64s
    row: Int64s  # the event in which the training thread waits
    start_ps: Int64s
    end_ps: Int64s
    launch_ps: Int64s  # when the executor was started
    bits: UInt32s  # what its ops were (vocabulary.BIT_*)
    call: Int32s  # index into Calls, -1 outside of any tf.function call


@dataclass(frozen=True)
class Calls:
    """Outermost tf.function calls on the training thread, in order."""

    row: Int64s
    start_ps: Int64s
    end_ps: Int64s
    concrete: Int32s  # name index of the graph that ran, -1 if none did
    traced: Bools
    bits: UInt32s


@dataclass(frozen=True)
class SideWork:
    """What a callback or the loop did with the model or its own data between two steps."""

    start_ps: Int64s  # disjoint intervals in order, in the trace's time
    end_ps: Int64s
    calls: Bools  # which of the thread's calls are part of it


SLOWER_LATER = 1.25  # times the first epoch: without a reason, epochs of one run differ by less
NO_SIDE_WORK = SideWork(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


@dataclass(frozen=True)
class TrainingThread:
    """The thread that trains, and what it called."""

    line: int  # index into Trace.lines
    calls: Calls
    runs: FunctionRuns
    side: SideWork = NO_SIDE_WORK

    @property
    def around_side_calls(self) -> tuple[Int64s, Int64s]:
        """Side work without its calls: there, datasets are created, with new graphs each time."""
        side, calls = self.side, self.calls
        own = calls.start_ps[side.calls], calls.end_ps[side.calls]
        return difference(side.start_ps, side.end_ps, *own)


@dataclass(frozen=True)
class Step:
    """One call of the training step (or of several, with steps_per_execution)."""

    index: int
    start_ps: int
    end_ps: int
    phase: StepPhase
    source: StepSource


@dataclass(frozen=True)
class Phase:
    """A part of the window; the phases tile it."""

    name: PhaseName
    start_ps: int
    end_ps: int
    error_ps: int = 0  # how far off its end may be; a log may know only the second


def off_at_both_ends(errors_ps: Iterable[int]) -> list[int]:
    """How far off the length of each phase may be: it begins where the previous one ends."""
    return [begin + end for begin, end in pairwise((0, *errors_ps))]


@dataclass(frozen=True)
class FirstStep:
    """The earliest proof in a log that the first step was over."""

    end_ps: int
    steps: int  # how many were over by then: 1 if it is the end of the first one
    source: str

    @property
    def exact(self) -> bool:
        return self.steps == 1


def starts_and_ends(spans: Sequence[Step | Phase]) -> tuple[Int64s, Int64s]:
    start = np.array([span.start_ps for span in spans], dtype=np.int64)
    return start, np.array([span.end_ps for span in spans], dtype=np.int64)


@dataclass(frozen=True)
class Window:
    """The first epoch. Window time counts from `start_ps` of the clock that all traces share."""

    start_ps: int
    end_ps: int
    start_source: str  # how each end was found, in words
    end_source: str
    clock_unix_ns: int | None = None  # when that clock began; None if not known
    epoch: int | None = 0  # None if no training was found: then the window is the whole trace

    @property
    def duration_ps(self) -> int:
        return self.end_ps - self.start_ps

    @property
    def start_unix_ns(self) -> int | None:
        clock_ns = self.clock_unix_ns
        return None if clock_ns is None else clock_ns + self.start_ps // PS_PER_NS


@dataclass(frozen=True)
class HostClock:
    """How a trace was aligned with those of the other hosts."""

    source: ClockSource
    shared: int = 0  # collectives or steps that it was aligned by
    ahead_ps: int | None = None  # of the common clock; None if it has no clock
    error_ps: int | None = None  # by how much the times of shared events differ (median)


@dataclass(frozen=True)
class TracedSteps:
    """Steps as a trace shows them, in order."""

    start_ps: Int64s
    end_ps: Int64s
    training: Bools  # otherwise validation
    source: StepSource
    eager: bool  # the training thread runs the ops itself, one by one
    epoch: Int64s | None = None  # if the markers say so
    number: Int64s | None = None  # as the markers count them

    @property
    def count(self) -> int:
        """How many are training steps."""
        return int(self.training.sum())

    @property
    def last_start_ps(self) -> int:
        """When the last training step began."""
        return int(self.start_ps[self.training].max(initial=0))

    def in_window(self, shift_ps: int, duration_ps: int) -> TracedSteps:
        """Steps that begin in the window, in window time, without what their markers say. On one of
        several hosts, the first step may begin a little before the window does.
        """
        start, end = self.start_ps + shift_ps, self.end_ps + shift_ps
        inside = ((start >= 0) | (start + end > 0)) & (start < duration_ps)
        start = np.maximum(start, 0)
        return TracedSteps(
            start[inside], end[inside], self.training[inside], self.source, self.eager
        )


@dataclass(frozen=True)
class AlignedTrace:
    """A trace on the window's clock: window time = event time + shift_ps."""

    source: TraceSource
    session: str
    shift_ps: int
    covered_ps: tuple[int, int]  # what the profiler recorded, clipped to the window
    training: TrainingThread | None
    clock: HostClock = HostClock("own clock")
    steps: TracedSteps | None = None  # those in the window, in window time
    cluster_hosts: int | None = None  # how many its collectives need, including itself
    is_cut: bool = False  # the file ends early
    # How long stopping the profiler and writing its files took at least: a log has whole seconds.
    stopping_ps: int = 0
    framework: Framework = "tensorflow"

    @property
    def host(self) -> str:
        return self.source.host

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def eager(self) -> bool:
        """Whether it trains op by op, without tf.function."""
        return self.steps is not None and self.steps.eager

    @property
    def trace(self) -> Trace:
        return self.source.read()


@dataclass(frozen=True)
class Meetings:
    """Collectives in which several of the traced hosts took part, in order of time.

    A row is a meeting, a column is a host; NEVER if the host was not seen in it.
    """

    hosts: tuple[str, ...]
    arrived_ps: Int64s  # when the host was ready for it, in window time
    ended_ps: Int64s

    def __len__(self) -> int:
        return len(self.arrived_ps)


@dataclass(frozen=True)
class Fits:
    """Calls of fit() in the process of a run."""

    count: int = 1
    told: int = 0  # which one the report is about, from 0
    same_model: bool = True  # all of them train one model, compiled once, as far as is known


@dataclass(frozen=True)
class Timeline:
    """The first epoch of a run: everything that was recorded about it, on one clock."""

    window: Window
    traces: tuple[AlignedTrace, ...]
    steps: tuple[Step, ...]
    phases: tuple[Phase, ...]
    later_epochs_ps: tuple[int, ...]
    events: EventLog | None
    notes: tuple[Note, ...] = ()
    dump: DebugDump | None = None
    consoles: tuple[ConsoleLog, ...] = ()  # every console that may belong to the job
    training_steps: int | None = None  # how many the epoch had; `steps` may be only some of them
    first_step: FirstStep | None = None  # from an ordinary log
    meetings: Meetings | None = None  # None if no two hosts were seen to meet
    unread_hosts: tuple[str, ...] = ()  # hosts whose traces could not be read
    foreign: tuple[ForeignTrace, ...] = ()  # traces that were recognized but not read
    fits: Fits = Fits()

    @property
    def later_epochs_are_slower(self) -> bool:
        """Whether they are slower than the first. The reason was not recorded, so nothing in the
        first epoch says how long they take after a change."""
        later, first_ps = self.later_epochs_ps, self.window.duration_ps
        return bool(later) and first_ps > 0 and median(later) > SLOWER_LATER * first_ps

    @property
    def framework(self) -> Framework:
        """The program's framework. Traces tell best, and a single one of TensorFlow decides."""
        traced = [trace.framework for trace in self.traces]
        traced += [trace.framework for trace in self.foreign]
        if traced:
            return "tensorflow" if "tensorflow" in traced else traced[0]
        if self.events is not None and self.events.other_backend:
            return OF_BACKENDS.get(self.events.other_backend, "other")
        return "other" if self.events is not None and self.events.is_foreign else "tensorflow"

    @property
    def is_foreign(self) -> bool:
        """Neither TensorFlow nor Keras runs here, so nothing we know about them applies."""
        events = self.events
        speaks_keras = events is not None and events.speaks_keras and not events.other_backend
        return self.framework != "tensorflow" and not speaks_keras
