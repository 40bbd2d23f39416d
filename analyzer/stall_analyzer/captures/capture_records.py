"""The records of a capture: what StallCallback or watch records about one training process.

The capture makes them and the analyzer reads them; `tb_stall_plugin/capture_format.md` says what
they mean. Each field is a key of the record's JSON (see `record_json`). What a record does not say
is None, or empty. Quick to import: this runs inside the user's training process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from stall_analyzer.model.kinds import Level
from stall_analyzer.model.records import dataclass

NS_PER_S = 1_000_000_000
# The tasks of a cluster that run training steps; the others serve variables or evaluate.
TRAINING_TASKS = ("chief", "master", "worker")


@dataclass(frozen=True)
class CaptureRecord:
    """The base of all records."""

    kind: ClassVar[str] = ""
    left_out: ClassVar[tuple[str, ...]] = ()  # fields that are not written if they are not set

    ns: int = 0  # unix time; 0 is replaced by the time at which it is recorded


@dataclass(frozen=True)
class Task:
    """A process of a cluster."""

    type: str  # "worker", "chief", "ps" …
    index: int

    def __str__(self) -> str:
        return f"{self.type} {self.index}"


@dataclass(frozen=True)
class ThreadSettings:
    """As set by the program; 0 leaves it to TensorFlow."""

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
    machine: str | None = None  # from captures/machine.py: where this pid identifies this process
    python: str = ""
    tensorflow: str | None = None
    keras: str | None = None
    backend: str | None = None  # what trains, as Keras names it: tensorflow, jax, torch
    devices: tuple[str, ...] | None = None  # not known before training begins
    cores: int | None = None
    bfloat16: bool | None = None  # whether the cores multiply it natively
    threads: ThreadSettings | None = None
    task: Task | None = None
    cluster: Mapping[str, tuple[str, ...]] | None = None  # addresses by type of task
    gpus: tuple[str, ...] | None = None  # compute capability of each: "8.6"
    built_for: tuple[str, ...] | None = None  # what this build has kernels for: "sm_80"
    flags: Mapping[str, str] | None = None  # environment variables about XLA and GPUs
    hang_after_s: float | None = None  # None if learned from the steps
    # Looked at from outside while it was already running: nothing is known about steps.
    attached: bool = False

    @property
    def training_tasks(self) -> tuple[Task, ...]:
        """All tasks of the cluster that train, including this one."""
        addresses = self.cluster or {}
        return tuple(
            Task(kind, n) for kind in TRAINING_TASKS for n in range(len(addresses.get(kind, ())))
        )


@dataclass(frozen=True)
class ModelRecord(CaptureRecord):
    """The model, and which of its layers are probed."""

    kind = "model"
    left_out = ("class_weight", "batch_size", "shuffle")

    optimizer: str | None = None
    parameters: int | None = None
    layers: tuple[str, ...] = ()  # probed layers, in the model's order
    probed: bool = False
    why: str | None = None  # why it was not probed
    # What fit() was given:
    class_weight: Mapping[str, float] | None = None  # by class
    batch_size: int | None = None
    shuffle: bool | None = None  # None if Keras does not shuffle this data


@dataclass(frozen=True)
class WeightsRecord(CaptureRecord):
    """Which of a model's weights are trained, at the end of an epoch."""

    kind = "weights"

    steps: int = 0  # since the weights were first looked at
    layers: tuple[str, ...] = ()  # the model's layers with trainable weights
    still: tuple[str, ...] = ()  # layers in which not a bit has changed
    not_given: tuple[str, ...] = ()  # layers whose weights the optimizer was not all given
    no_gradient: tuple[str, ...] = ()  # those for which the optimizer got None as a gradient
    updates: int | None = None  # how many the optimizer has made


@dataclass(frozen=True)
class MarkRecord(CaptureRecord):
    """A fit, an epoch or a validation began or ended."""

    kind = "mark"
    left_out = ("steps", "own_s", "endless", "where")

    what: str = ""  # one of capture_format.MarkName
    epoch: int | None = None
    step: int | None = None  # steps that had finished
    steps: int | None = None  # per epoch, when a fit begins and knows it
    own_s: float | None = None  # what the capture has taken from the training thread so far
    endless: bool = False  # a fit or a validation without a step count, on endless data
    where: str = ""  # the generator that the data comes from: "path:line function"


@dataclass(frozen=True)
class BookItem:
    """Part of an account in the books, such as one callback's hook or one function."""

    account: str = ""  # one of capture_format.Account
    name: str = ""  # such as "ModelCheckpoint.on_epoch_end"
    where: str = ""  # path:line of the code, if there is any
    count: int = 0
    spent_ns: int = 0
    why: str = ""  # if a function was traced again: which arguments had changed


@dataclass(frozen=True)
class BooksRecord(CaptureRecord):
    """How the training thread spent a stretch of time: rows, each beginning where the last one
    ended. The accounts of a row add up to its length.
    """

    kind = "books"
    left_out = ("is_open", "items", "epoch")

    began_ns: int = 0  # unix time
    phase: str = ""  # one of capture_format.BookPhase
    epoch: int | None = None
    lasted_ns: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()  # how many ended in each row
    calls: tuple[int, ...] = ()  # how many calls of compiled functions each row has
    spent_ns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by account; no zeros
    items: tuple[BookItem, ...] = ()
    # The last row is not over: a later record repeats it, if the process lives long enough.
    is_open: bool = False


@dataclass(frozen=True)
class StackSamples:
    """How often, and for how long in total, threads were seen in one place."""

    account: str = ""  # what the training thread was in: one of capture_format.Account
    item: str = ""  # the name of a BookItem of that account
    background: bool = False  # another thread was seen there at the same time
    stack: int = 0
    count: int = 0
    seen_ns: int = 0


@dataclass(frozen=True)
class StacksRecord(CaptureRecord):
    """Where Python was seen since the last such record. Frames and stacks have numbers, and each is
    recorded once per process."""

    kind = "stacks"

    began_ns: int = 0  # unix time
    frames: Mapping[str, str] = field(default_factory=dict)  # "path:line function", by number
    # By number: the numbers of their frames, innermost first.
    stacks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    samples: tuple[StackSamples, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)  # the user's lines, by "path:line"
    # Functions that TensorFlow called in the background, timed by clocks, while the training thread
    # was in the account. Functions that ran at the same time share that time.
    calls: tuple[BookItem, ...] = ()


@dataclass(frozen=True)
class WindowRecord(CaptureRecord):
    """A window of the profiler was opened or saved, or could not be."""

    kind = "window"
    left_out = ("last_step", "ended_by", "session", "seconds", "why")

    what: str = ""  # one of capture_format.WindowEvent
    reason: str = ""  # one of WindowReason
    ended_by: str | None = None  # one of WindowEnd
    first_step: int | None = None
    last_step: int | None = None
    session: str | None = None
    seconds: float | None = None  # how long saving took
    why: str | None = None


@dataclass(frozen=True)
class PreflightCheck:
    """One of the checks before the first epoch."""

    name: str = ""  # one of capture_format.CheckName
    result: str = ""  # one of CheckResult
    text: str = ""  # what was seen, or why it was not checked
    fault: str = ""  # if it failed: one of CheckFault


@dataclass(frozen=True)
class PreflightRecord(CaptureRecord):
    """What trying one batch showed before the first epoch."""

    kind = "preflight"

    seconds: float | None = None  # how long it took
    checks: tuple[PreflightCheck, ...] = ()


@dataclass(frozen=True)
class NoteRecord(CaptureRecord):
    """What is missing from the capture, and why."""

    kind = "note"

    level: Level = "warning"
    text: str = ""


@dataclass(frozen=True)
class EndRecord(CaptureRecord):
    """The last record of a process."""

    kind = "end"

    reason: str = ""  # one of capture_format.StopReason
