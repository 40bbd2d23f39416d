"""The records of a capture: what StallCallback or watch wrote down of one training process.

`tb_stall_plugin/capture_format.md` says what they mean. What a record does not say is None, or
empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stall_analyzer.captures.capture_format import Mark as What
from stall_analyzer.captures.capture_format import Reason
from stall_analyzer.captures.capture_format import Window as Profile

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Task:
    """A process of a cluster."""

    type: str  # "worker", "chief", "ps" …
    index: int

    def __str__(self) -> str:
        return f"{self.type} {self.index}"


@dataclass(frozen=True)
class Environment:
    """What the process runs on."""

    host: str = ""
    pid: int | None = None
    parent: int | None = None  # pid of the process that started it
    task: Task | None = None
    training_tasks: tuple[Task, ...] = ()  # all of the cluster that train, this one among them
    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # addresses, by task type
    tensorflow: str = ""
    keras: str = ""
    python: str = ""
    devices: tuple[str, ...] = ()
    cores: int | None = None
    intra_op_threads: int | None = None  # 0: left to TensorFlow
    inter_op_threads: int | None = None
    hang_after_s: float | None = None  # None: learned from the steps


@dataclass(frozen=True)
class ModelRecord:
    optimizer: str = ""
    parameters: int | None = None
    layers: tuple[str, ...] = ()  # that were looked into, in the model's order
    probed: bool = False
    why_not: str = ""


@dataclass(frozen=True)
class Mark:
    ns: int
    what: str  # a word of capture_format.Mark
    epoch: int | None
    step: int | None  # steps that had finished


@dataclass(frozen=True)
class ProfileRecord:
    """A window of the profiler was opened or saved, or could not be."""

    ns: int
    what: str
    reason: str  # both are words of capture_format.Window
    session: str
    first_step: int | None
    last_step: int | None
    seconds: float  # that saving took
    why: str


@dataclass(frozen=True)
class ThreadStack:
    """Python threads that are all in the same place."""

    name: str
    main: bool
    frames: tuple[str, ...]  # "path:line function", innermost first
    count: int = 1
    wait: str = ""  # the system call it is in; empty where that is not known


@dataclass(frozen=True)
class NativeThreads:
    """Threads of the process that have one name and wait in the same place of the kernel."""

    name: str
    state: str  # as in /proc: S sleeps, R runs, D waits for a disk
    wait: str  # the kernel's function; empty where it does not say
    count: int


@dataclass(frozen=True)
class Look:
    """A look at a process in which no step finishes."""

    ns: int
    step: int  # steps that had finished
    idle_s: float  # since the last of them, or since the beginning
    phase: str  # a word of capture_format.Phase
    cpu_s: float | None  # used by the process so far
    threads: tuple[ThreadStack, ...]

    @property
    def main(self) -> ThreadStack | None:
        return next((thread for thread in self.threads if thread.main), None)

    @property
    def sign_ns(self) -> int:
        """When it last gave a sign of life."""
        return self.ns - round(self.idle_s * NS_PER_S)


@dataclass(frozen=True)
class Dump(Look):
    """The same with all that could be found out."""

    reason: str  # a word of capture_format.Reason
    limit_s: float | None = None
    native: tuple[NativeThreads, ...] = ()
    memory: Mapping[str, float] = field(default_factory=dict)  # by the names of capture_format.Host
    error_type: str = ""
    error_text: str = ""
    error_frames: tuple[str, ...] = ()
    interpreter_held: bool = False  # no Python could run, the capture's own included


@dataclass(frozen=True)
class CaptureNote:
    level: str
    text: str


@dataclass(frozen=True)
class End:
    ns: int
    reason: str  # a word of capture_format.Reason


@dataclass(frozen=True)
class CaptureLog:
    """All records of one process, each kind in order of time."""

    environment: Environment = field(default_factory=Environment)
    model: ModelRecord | None = None
    marks: tuple[Mark, ...] = ()
    windows: tuple[ProfileRecord, ...] = ()
    beats: tuple[Look, ...] = ()
    dumps: tuple[Dump, ...] = ()
    notes: tuple[CaptureNote, ...] = ()
    end: End | None = None  # None: it was killed, or still runs
    first_ns: int = 0  # of its first and of its last record or scalar
    last_ns: int = 0

    @property
    def trains(self) -> bool:
        """Whether a training ever began in it."""
        return bool(self.marks)

    @property
    def trace_name(self) -> str:
        """What its traces are called: host, and task in a cluster."""
        task = self.environment.task
        host = self.environment.host
        return host if task is None else f"{host}-{task.type}-{task.index}"

    @property
    def first_fit(self) -> tuple[Mark, ...]:
        """The marks of the first fit() alone, up to an error that ended it."""
        errors = [dump.ns for dump in self.dumps if dump.reason == Reason.EXCEPTION]
        marks = [mark for mark in self.marks if not errors or mark.ns < errors[0]]
        begins = [i for i, mark in enumerate(marks) if mark.what == What.FIT_BEGIN]
        return tuple(marks[: begins[1]] if len(begins) > 1 else marks)

    @property
    def looks(self) -> tuple[Look, ...]:
        """Beats and dumps in order of time."""
        return tuple(sorted((*self.beats, *self.dumps), key=lambda look: look.ns))

    def opened(self, session: str) -> ProfileRecord | None:
        """When the window was opened that was saved as this session."""
        before: ProfileRecord | None = None
        for record in self.windows:
            if record.what == Profile.OPENED:
                before = record
            elif record.what == Profile.SAVED and record.session == session:
                return before
        return None
