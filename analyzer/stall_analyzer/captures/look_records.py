"""The records of a process in which no step finishes: looks at its threads, and at what TensorFlow
is doing. Like all records, light to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from stall_analyzer.captures.capture_records import NS_PER_S, CaptureRecord
from stall_analyzer.model.records import dataclass

ENDLESS_SIZE = -1  # tf.data's value for the size of an endless dataset


@dataclass(frozen=True)
class Loop:
    """The innermost loop of the user's own code that a thread is in."""

    word: str = ""  # "while" or "for"
    line: int = 0  # the first of its lines, and the last
    last: int = 0
    is_empty: bool = False  # except for a few operators: an iteration takes almost no time
    # Unless there is an error: nothing leaves it, or only what can never happen.
    has_no_end: bool = False


@dataclass(frozen=True)
class NamedLock:
    """A lock of Python's."""

    id: int = 0  # the same for all threads
    name: str = ""  # as the code of this thread has it: "self.lock"


@dataclass(frozen=True)
class ThreadStack:
    """Python threads that are all in the same place."""

    name: str = ""
    main: bool = False
    count: int = 1
    wait: str = ""  # the system call it is in; empty if that is not known
    frames: tuple[str, ...] = ()  # "path:line function", innermost first
    on: str = ""  # what that call acts on: a path, "the socket to 10.0.0.7:443"
    keeps_alive: bool = False  # the process cannot exit before it: it is not a daemon thread
    ran_ns: int | None = None  # time on a core, of all these threads together; None if not known
    turns: int | None = None  # how often they were on a core
    loop: Loop | None = None
    waits_for: NamedLock | None = None
    holds: tuple[NamedLock, ...] = ()


@dataclass(frozen=True)
class ChildProcess:
    """A process that the training started."""

    pid: int = 0
    name: str = ""
    state: str = ""  # as in /proc: Z has ended, but its parent has not collected it
    wait: str = ""  # the system call it is in
    cpu_s: float | None = None


@dataclass(frozen=True)
class NativeThreads:
    """Threads of the process with the same name that wait in the same place in the kernel."""

    name: str = ""
    state: str = ""  # as in /proc: S sleeps, R runs, D waits for a disk
    wait: str = ""  # the kernel's function; empty if it does not say
    count: int = 1
    on: str = ""  # what that call acts on
    python: bool = False  # they run Python as well


@dataclass(frozen=True)
class CapturedError:
    """The exception that ended training."""

    type: str = ""
    text: str = ""
    frames: tuple[str, ...] = ()
    uncaught: bool = False  # it ended the program, though perhaps not yet the process


@dataclass(frozen=True, kw_only=True)
class Look(CaptureRecord):
    """A look at a process in which no step finishes."""

    kind = "beat"
    left_out: ClassVar[tuple[str, ...]] = ("tasks_left",)

    step: int  # steps that had finished
    idle_s: float  # since the last step, or since the beginning
    limit_s: float | None = None
    phase: str = ""  # one of capture_format.TrainingPhase
    cpu_s: float | None = None  # used by the process so far, without the capture's own threads
    threads: tuple[ThreadStack, ...] = ()
    children: tuple[ChildProcess, ...] = ()
    tasks_left: int | None = None  # in a pool of processes that the main thread waits for

    @property
    def main(self) -> ThreadStack | None:
        return next((thread for thread in self.threads if thread.main), None)

    @property
    def sign_ns(self) -> int:
        """When the process last gave a sign of life."""
        return self.ns - round(self.idle_s * NS_PER_S)


@dataclass(frozen=True, kw_only=True)
class DumpRecord(Look):
    """A look with everything that could be found out."""

    kind = "dump"
    left_out = ("tasks_left", "error", "interpreter_held", "for_data", "signal_ns")

    reason: str = ""  # one of capture_format.StopReason
    native: tuple[NativeThreads, ...] = ()
    memory: Mapping[str, float] = field(default_factory=dict)  # by capture_format.HostMetric
    error: CapturedError = CapturedError()  # if it was an exception
    interpreter_held: bool = False  # no Python could run, not even the capture's own
    signal_ns: int = 0  # when the signal that caused it arrived
    for_data: bool = False  # what the main thread is doing produces training data


@dataclass(frozen=True)
class InputStage:
    """A stage of a tf.data pipeline, as written in the program."""

    name: str = ""  # "Filter"
    where: str = ""  # "path:line function" of the user's function that it calls
    size: int | None = None  # number of elements: -1 if endless, -2 if not known


@dataclass(frozen=True)
class StageCount:
    """A stage as TensorFlow runs it, and how many elements it has produced."""

    id: int = 0  # each new iterator gets the next number
    name: str = ""
    gave: int = 0
    buffered: int = 0


@dataclass(frozen=True)
class GraphLoop:
    """A loop inside a graph that only its condition can end."""

    where: str = ""  # "path:line function"
    of_input: bool = False  # in a function of tf.data; else in the step


@dataclass(frozen=True)
class GraphWait:
    """An op of the running graph that by its nature waits for others."""

    op: str = ""  # its type: "QueueDequeueManyV2"
    where: str = ""  # "path:line function"


@dataclass(frozen=True)
class FixedLoop:
    """A while loop in the user's code whose condition is always computed from the same values."""

    where: str = ""  # "path:line function"
    last: int = 0  # its last line
    rounds: int = 0  # at least this many while it was watched
    values: str = ""  # in words: "loss is NaN"


@dataclass(frozen=True)
class WorkRecord(CaptureRecord):
    """What TensorFlow was doing for the main thread, in a process in which no step finishes."""

    kind = "work"
    left_out = ("compiles",)

    steps: int | None = None  # how many Keras was told to run
    stages: tuple[InputStage, ...] = ()  # from the last one to the source
    counts: tuple[StageCount, ...] = ()  # the same
    loops: tuple[GraphLoop, ...] = ()
    waits: tuple[GraphWait, ...] = ()
    generator: str = ""  # "path:line function" that yields the data forever
    taken_in: str = ""  # the same for a user's for loop that ends only with its data
    fixed: FixedLoop | None = None  # then the record says nothing else
    compiles: bool = False  # XLA compiles the function when it first runs with these shapes

    @property
    def has_endless_data(self) -> bool:
        return bool(self.generator) or (bool(self.stages) and self.stages[0].size == ENDLESS_SIZE)
