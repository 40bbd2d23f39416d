"""The records of a capture: what StallCallback or watch records about one training process.

The capture makes them and the analyzer reads them; `tb_stall_plugin/capture_format.md` says what
they mean. Each field is a key of the record's JSON (see `record_json`). What a record does not say
is None, or empty. Light to import: this runs inside the user's training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from stall_analyzer.model.kinds import Level
from stall_analyzer.model.records import dataclass

ENDLESS_SIZE = -1  # as tf.data tells the size of a dataset
NS_PER_S = 1_000_000_000
# The tasks of a cluster that run training steps; the others serve variables or evaluate.
TRAINING_TASKS = ("chief", "master", "worker")


@dataclass(frozen=True)
class CaptureRecord:
    """What every record has."""

    kind: ClassVar[str] = ""
    left_out: ClassVar[tuple[str, ...]] = ()  # fields that are not written while unset

    ns: int = 0  # unix time; 0 becomes the time at which it is recorded


@dataclass(frozen=True)
class Task:
    """A process of a cluster."""

    type: str  # "worker", "chief", "ps" …
    index: int

    def __str__(self) -> str:
        return f"{self.type} {self.index}"


@dataclass(frozen=True)
class ThreadSettings:
    """As set; 0 leaves it to TensorFlow."""

    intra_op: int | None = None
    inter_op: int | None = None


@dataclass(frozen=True)
class Environment(CaptureRecord):
    """What the process runs on."""

    kind = "start"
    left_out = ("attached", "gpus", "built_for", "flags", "machine")

    format: int | None = None
    tool: str = ""
    host: str = ""
    pid: int | None = None
    parent: int | None = None  # pid of the process that started it
    machine: str | None = None  # by captures/machine.py: where this pid means this process
    python: str = ""
    tensorflow: str | None = None
    keras: str | None = None
    backend: str | None = None  # that trains, as Keras names it: tensorflow, jax, torch
    devices: tuple[str, ...] | None = None  # not known before training begins
    cores: int | None = None
    bfloat16: bool | None = None  # whether the cores multiply it by instructions of their own
    threads: ThreadSettings | None = None
    task: Task | None = None
    cluster: Mapping[str, tuple[str, ...]] | None = None  # addresses by type of task
    gpus: tuple[str, ...] | None = None  # compute capability of each: "8.6"
    built_for: tuple[str, ...] | None = None  # what this build holds kernels for: "sm_80"
    flags: Mapping[str, str] | None = None  # of the environment, that concern XLA and GPUs
    hang_after_s: float | None = None  # None: learned from the steps
    attached: bool = False  # looked at from outside, when it ran already: of steps nothing is known

    @property
    def training_tasks(self) -> tuple[Task, ...]:
        """All of the cluster that train, this one among them."""
        addresses = self.cluster or {}
        return tuple(
            Task(kind, n) for kind in TRAINING_TASKS for n in range(len(addresses.get(kind, ())))
        )


@dataclass(frozen=True)
class ModelRecord(CaptureRecord):
    """The model, and which of its layers are looked into."""

    kind = "model"
    left_out = ("class_weight", "batch_size", "shuffle")

    optimizer: str | None = None
    parameters: int | None = None
    layers: tuple[str, ...] = ()  # that were looked into, in the model's order
    probed: bool = False
    why: str | None = None  # it was not probed
    # What fit() was given:
    class_weight: Mapping[str, float] | None = None  # by class
    batch_size: int | None = None
    shuffle: bool | None = None  # None: of data that Keras does not shuffle


@dataclass(frozen=True)
class WeightsRecord(CaptureRecord):
    """Which of a model's weights are trained: by the end of an epoch."""

    kind = "weights"

    steps: int = 0  # since the weights were first looked at
    layers: tuple[str, ...] = ()  # of the model, whose weights are said to be trainable
    still: tuple[str, ...] = ()  # of these, those of which not a bit has changed
    not_given: tuple[str, ...] = ()  # to the optimizer, with all their weights or some
    no_gradient: tuple[str, ...] = ()  # the optimizer got None in place of one
    updates: int | None = None  # that the optimizer has made


@dataclass(frozen=True)
class MarkRecord(CaptureRecord):
    """A fit, an epoch or a validation began or ended."""

    kind = "mark"
    left_out = ("steps", "own_s", "endless", "where")

    what: str = ""  # a word of capture_format.MarkName
    epoch: int | None = None
    step: int | None = None  # steps that had finished
    steps: int | None = None  # of an epoch, where a fit begins that knows it
    own_s: float | None = None  # that the capture has taken of the training thread so far
    endless: bool = False  # of a fit or a validation: without steps, and with data without end
    where: str = ""  # the generator that they come from: "path:line function"


@dataclass(frozen=True)
class BookItem:
    """Part of an account of the books: one callback's hook, say, or one function."""

    account: str = ""  # a word of capture_format.Account
    name: str = ""  # such as "ModelCheckpoint.on_epoch_end"
    where: str = ""  # path:line of the code, where there is one
    count: int = 0
    spent_ns: int = 0
    why: str = ""  # a function was traced again: which arguments had changed


@dataclass(frozen=True)
class BooksRecord(CaptureRecord):
    """How the training thread spent a stretch of time: rows, each beginning where the last ended.

    What the accounts of a row hold adds up to how long it lasted.
    """

    kind = "books"
    left_out = ("is_open", "items", "epoch")

    began_ns: int = 0  # unix time
    phase: str = ""  # a word of capture_format.BookPhase
    epoch: int | None = None
    lasted_ns: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()  # that ended in each row
    calls: tuple[int, ...] = ()  # of compiled functions, in each row
    spent_ns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by account; no zeros
    items: tuple[BookItem, ...] = ()
    # The last row is not over: a later record has it again, if the process lives so long.
    is_open: bool = False


@dataclass(frozen=True)
class StackSamples:
    """How often, and for how long in all, threads were seen in one place."""

    account: str = ""  # what the training thread was in: a word of capture_format.Account
    item: str = ""  # of that account: the name of a BookItem
    background: bool = False  # it was another thread that was seen there, meanwhile
    stack: int = 0
    count: int = 0
    seen_ns: int = 0


@dataclass(frozen=True)
class StacksRecord(CaptureRecord):
    """Where Python was seen since the last such record. Frames and stacks have numbers, and are
    told once for the whole process."""

    kind = "stacks"

    began_ns: int = 0  # unix time
    frames: Mapping[str, str] = field(default_factory=dict)  # "path:line function", by number
    # By number: those of their frames, innermost first.
    stacks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    samples: tuple[StackSamples, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)  # the user's lines, by "path:line"
    # Functions that TensorFlow called in the background, by clocks, while the training thread was
    # in the account. Those that ran at the same time share it.
    calls: tuple[BookItem, ...] = ()


@dataclass(frozen=True)
class WindowRecord(CaptureRecord):
    """A window of the profiler was opened or saved, or could not be."""

    kind = "window"
    left_out = ("last_step", "ended_by", "session", "seconds", "why")

    what: str = ""  # these are words of capture_format.WindowEvent,
    reason: str = ""  # WindowReason
    ended_by: str | None = None  # and WindowEnd
    first_step: int | None = None
    last_step: int | None = None
    session: str | None = None
    seconds: float | None = None  # that saving took
    why: str | None = None


@dataclass(frozen=True)
class Loop:
    """The innermost loop, in the user's own code, that a thread is in."""

    word: str = ""  # "while" or "for"
    line: int = 0  # the first of its lines, and the last
    last: int = 0
    is_empty: bool = False  # but for a few operators: a round takes next to nothing
    has_no_end: bool = False  # but for an error: no way leads out of it, or only one that is closed


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
    wait: str = ""  # the system call it is in; empty where that is not known
    frames: tuple[str, ...] = ()  # "path:line function", innermost first
    on: str = ""  # what that call is about: a path, "the socket to 10.0.0.7:443"
    keeps_alive: bool = False  # the process does not exit before it: it is no daemon
    ran_ns: int | None = None  # on a core, of all of them together; None: not known
    turns: int | None = None  # how often they got one
    loop: Loop | None = None
    waits_for: NamedLock | None = None
    holds: tuple[NamedLock, ...] = ()


@dataclass(frozen=True)
class ChildProcess:
    """A process that the training started."""

    pid: int = 0
    name: str = ""
    state: str = ""  # as in /proc: Z has ended, and nobody asked how
    wait: str = ""  # the system call it is in
    cpu_s: float | None = None


@dataclass(frozen=True)
class NativeThreads:
    """Threads of the process that have one name and wait in the same place of the kernel."""

    name: str = ""
    state: str = ""  # as in /proc: S sleeps, R runs, D waits for a disk
    wait: str = ""  # the kernel's function; empty where it does not say
    count: int = 1
    on: str = ""  # what that call is about
    python: bool = False  # they run Python as well


@dataclass(frozen=True)
class CapturedError:
    """The exception that ended a training."""

    type: str = ""
    text: str = ""
    frames: tuple[str, ...] = ()
    uncaught: bool = False  # it ended the program, if not yet the process


@dataclass(frozen=True, kw_only=True)
class Look(CaptureRecord):
    """A look at a process in which no step finishes."""

    kind = "beat"
    left_out: ClassVar[tuple[str, ...]] = ("tasks_left",)

    step: int  # steps that had finished
    idle_s: float  # since the last of them, or since the beginning
    limit_s: float | None = None
    phase: str = ""  # a word of capture_format.TrainingPhase
    cpu_s: float | None = None  # used by the process so far, without the capture's own threads
    threads: tuple[ThreadStack, ...] = ()
    children: tuple[ChildProcess, ...] = ()
    tasks_left: int | None = None  # of a pool of processes that the main thread waits for

    @property
    def main(self) -> ThreadStack | None:
        return next((thread for thread in self.threads if thread.main), None)

    @property
    def sign_ns(self) -> int:
        """When it last gave a sign of life."""
        return self.ns - round(self.idle_s * NS_PER_S)


@dataclass(frozen=True, kw_only=True)
class DumpRecord(Look):
    """The same with all that could be found out."""

    kind = "dump"
    left_out = ("tasks_left", "error", "interpreter_held", "for_data", "signal_ns")

    reason: str = ""  # a word of capture_format.StopReason
    native: tuple[NativeThreads, ...] = ()
    memory: Mapping[str, float] = field(default_factory=dict)  # by capture_format.HostMetric
    error: CapturedError = CapturedError()  # of an exception
    interpreter_held: bool = False  # no Python could run, the capture's own included
    signal_ns: int = 0  # when the signal came that it was written for
    for_data: bool = False  # what the main thread is at becomes data of the training


@dataclass(frozen=True)
class InputStage:
    """A stage of a tf.data pipeline as it was written."""

    name: str = ""  # "Filter"
    where: str = ""  # "path:line function" of the user's that it calls
    size: int | None = None  # elements: -1 without end, -2 not known


@dataclass(frozen=True)
class StageCount:
    """A stage as TensorFlow runs it, and how many elements it has given."""

    id: int = 0  # each iterator that is made gets the next one
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
    """An op of the graph that runs, which waits for others by its nature."""

    op: str = ""  # its type: "QueueDequeueManyV2"
    where: str = ""  # "path:line function"


@dataclass(frozen=True)
class FixedLoop:
    """A while loop in the user's code that recomputes its condition from the same values."""

    where: str = ""  # "path:line function"
    last: int = 0  # of its lines
    rounds: int = 0  # at least, while it was looked at
    values: str = ""  # in words: "loss is NaN"


@dataclass(frozen=True)
class WorkRecord(CaptureRecord):
    """What TensorFlow was at for the main thread, in a process in which no step finishes."""

    kind = "work"
    left_out = ("compiles",)

    steps: int | None = None  # that Keras was told to make
    stages: tuple[InputStage, ...] = ()  # from the last one to the source
    counts: tuple[StageCount, ...] = ()  # the same
    loops: tuple[GraphLoop, ...] = ()
    waits: tuple[GraphWait, ...] = ()
    generator: str = ""  # "path:line function": that yields forever, and whose data they are
    taken_in: str = ""  # the same of a for loop of the user's that only its data end
    fixed: FixedLoop | None = None  # then the record tells nothing else
    compiles: bool = False  # XLA compiles what is called, when it first runs with such shapes

    @property
    def has_endless_data(self) -> bool:
        return bool(self.generator) or (bool(self.stages) and self.stages[0].size == ENDLESS_SIZE)


@dataclass(frozen=True)
class PreflightCheck:
    """One of the checks before the first epoch."""

    name: str = ""  # these are words of capture_format.CheckName
    result: str = ""  # and CheckResult
    text: str = ""  # what was seen, or why it was not checked
    fault: str = ""  # of one that failed, a word of CheckFault


@dataclass(frozen=True)
class PreflightRecord(CaptureRecord):
    """What one batch showed before the first epoch, on trial."""

    kind = "preflight"

    seconds: float | None = None  # that it took
    checks: tuple[PreflightCheck, ...] = ()


@dataclass(frozen=True)
class NoteRecord(CaptureRecord):
    """What is missing from the capture, and why."""

    kind = "note"

    level: Level = "warning"
    text: str = ""


@dataclass(frozen=True)
class EndRecord(CaptureRecord):
    """The last word of a process."""

    kind = "end"

    reason: str = ""  # a word of capture_format.StopReason


RECORDS: tuple[type[CaptureRecord], ...] = (
    Environment, ModelRecord, WeightsRecord, MarkRecord, BooksRecord, StacksRecord, WindowRecord,
    Look, DumpRecord, WorkRecord, PreflightRecord, NoteRecord, EndRecord,
)  # fmt: skip
