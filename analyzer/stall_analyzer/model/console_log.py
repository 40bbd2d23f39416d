"""What a job's terminal output says about how the job went: what `consoles` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from stall_analyzer.model.records import dataclass

# How a job ended if it did not end by itself.
EndKind: TypeAlias = Literal[
    "out_of_memory", "killed", "crashed", "told_to_end",
    "time_limit", "preempted", "node_failed", "cancelled", "exit_code",
]  # fmt: skip
WarningKind: TypeAlias = Literal[
    "ptx", "slow_compile", "retracing", "large_allocation", "ran_out_of_data", "gpu_libraries",
    "partial_cache", "no_gradients", "nccl", "autotuning",
    "gpu_device", "memory_growth", "nccl_start", "cuda_failure",
]  # fmt: skip


@dataclass(frozen=True)
class ConsoleLine:
    """A line of a console, without colors and without the prefix before its message."""

    text: str
    file: str  # its name
    number: int | None = None  # None in a long file whose middle was not read
    unix_ns: int | None = None  # if the line has a time that means the same everywhere

    @property
    def place(self) -> str:
        return self.file if self.number is None else f"{self.file}:{self.number}"


@dataclass(frozen=True)
class PythonError:
    """The last traceback of a console."""

    kind: str  # "ResourceExhaustedError"
    message: str  # the line of it that matters
    frames: tuple[str, ...]  # "path:line function", innermost first
    line: ConsoleLine
    is_last: bool  # training does not continue after it

    @property
    def text(self) -> str:
        return ": ".join(filter(None, (self.kind, self.message)))


@dataclass(frozen=True)
class JobEnd:
    """What the shell, the kernel or the scheduler said about the end."""

    kind: EndKind
    line: ConsoleLine


@dataclass(frozen=True)
class ConsoleWarning:
    """A warning that explains time or learning, and how often it came."""

    line: ConsoleLine  # the first such line
    count: int = 1
    seconds: float | None = None  # how long something took according to all these lines together


@dataclass(frozen=True)
class ShuffleFill:
    """How the shuffle buffer was filled for the first time."""

    elements: int  # how many were in it at the last message
    size: int
    seconds: float
    is_filled: bool
    line: ConsoleLine


@dataclass(frozen=True)
class PrintedProgress:
    """The last line of Keras's progress."""

    epoch: int | None  # from 1
    epochs: int | None
    step: int
    steps: int | None  # None while Keras does not know
    loss_is_nan: bool = False

    @property
    def words(self) -> str:
        of_all = f" of {self.steps:,}" if self.steps else ""
        epoch = f" in epoch {self.epoch}" if self.epoch else ""
        return f"step {self.step:,}{of_all}{epoch}"


@dataclass(frozen=True)
class ConsoleLog:
    """One console, which may be several files (job.out and job.err)."""

    files: tuple[str, ...]
    trains: bool  # TensorFlow or Keras wrote something to it
    is_own: bool  # it is in the run's folder, or its name says whose it is
    is_named: bool = False  # by the user
    error: PythonError | None = None
    end: JobEnd | None = None
    warnings: Mapping[WarningKind, ConsoleWarning] = field(default_factory=dict)
    fill: ShuffleFill | None = None
    progress: PrintedProgress | None = None
    first_ns: int | None = None  # the first line's time that means the same everywhere
    written_ns: int | None = None  # last modified, according to the file system
