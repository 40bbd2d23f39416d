"""How a captured process ended: on its own, with an error, by a signal, or without a word."""

from __future__ import annotations

from collections.abc import Mapping

from stall_analyzer.captures.capture_format import HostMetric, StopReason, Tag
from stall_analyzer.captures.look_records import DumpRecord
from stall_analyzer.captures.machine import is_gone
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.error_text import essential_line
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import moment
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.tensorflow_error import read_error
from stall_analyzer.signals.ending.python_stacks import CALLS_BACK, GENERATES, stack_of_error

NS = 1_000_000_000
# A capture writes every second, or every half minute to a URL.
SILENT_NS = 120 * NS
LEAST_SILENT_NS = 3 * NS
# The kernel kills a process when no memory is left; the last few percent cannot be used.
FULL_SHARE = 0.95
KILLED = "killed"
# Errors that TensorFlow raises when another worker does not answer …
OF_THE_CLUSTER = ("UnavailableError", "AbortedError", "DeadlineExceededError")
# … and, as Python does, when memory is short.
OUT_OF_MEMORY = ("ResourceExhaustedError", "MemoryError", "OutOfMemoryError")

INTERRUPTS = ("KeyboardInterrupt", "SystemExit")


@dataclass(frozen=True)
class Ending:
    """How a process ended, and why."""

    reason: str  # a word of capture_format.StopReason, or KILLED
    ns: int
    error: str = ""  # "ValueError: no such file"
    place: Frame | None = None  # of the error, in the user's own code
    out_of_memory: bool = False
    of_the_cluster: bool = False  # another worker is the reason
    of_input: bool = False  # it came out of the input pipeline
    of_callback: bool = False
    op: str = ""  # the TensorFlow op that failed
    defined_at: Frame | None = None  # the user's own line that created it
    process_lives: bool = False  # the program failed, and its process did not exit

    @property
    def bucket(self) -> Bucket:
        if self.out_of_memory:
            return "memory"
        if self.of_the_cluster:
            return "communication"
        if self.of_callback:
            return "host"
        return "input" if self.of_input else "unknown"

    @property
    def has_failed(self) -> bool:
        """Whether it ended with an error of its own, not because somebody interrupted it."""
        return self.reason == StopReason.EXCEPTION and not self.error.startswith(INTERRUPTS)

    @property
    def is_early(self) -> bool:
        """Whether the process did not end on its own."""
        return self.reason != StopReason.EXIT

    @property
    def sentence(self) -> str:
        """When the process ended, and why: this says whether it can still be looked at."""
        at = moment(self.ns)
        if self.process_lives:
            return f"The program failed at {at} with {self.error}, but its process did not exit."
        if self.reason == KILLED:
            return f"The process was killed: its last record is from {at}."
        if self.reason == StopReason.EXIT:
            return f"The program ended at {at}."  # its process may not have exited
        if self.reason == StopReason.EXCEPTION:
            return f"The process ended at {at} with {self.error}."
        return f"The process ended at {at}: it received {self.reason.upper()}."


def ending_of(capture: Capture, read_ns: int | None) -> Ending | None:
    """None while the process may still be running."""
    errors = [dump for dump in capture.dumps if dump.reason == StopReason.EXCEPTION]
    uncaught = [dump for dump in errors if dump.error.uncaught]
    if uncaught:
        return _of_error(capture, uncaught[-1])
    if capture.end is None:
        if read_ns is None or not was_killed(capture, read_ns):
            return None
        return Ending(KILLED, capture.last_ns, out_of_memory=_was_full(_memory(capture)))
    if capture.end.reason != StopReason.EXCEPTION or not errors:
        return Ending(capture.end.reason, capture.end.ns)
    return _of_error(capture, errors[-1])


def was_killed(capture: Capture, read_ns: int) -> bool:
    """A capture without an end: it has been silent for too long, or its process is surely gone."""
    silent_ns = read_ns - capture.last_ns
    # One that has just ended may have written its end a moment after we read.
    is_missed = silent_ns > LEAST_SILENT_NS and is_gone(capture.environment)
    return capture.end is None and (silent_ns > SILENT_NS or is_missed)


def _of_error(capture: Capture, dump: DumpRecord) -> Ending:
    error, said = dump.error, read_error(dump.error.text)
    kind = error.type.rpartition(".")[2]
    is_over = capture.end is not None and capture.end.reason == StopReason.EXCEPTION
    stack = stack_of_error(error.frames)
    caller = stack.users_caller(GENERATES, CALLS_BACK)
    return Ending(
        StopReason.EXCEPTION,
        capture.end.ns if capture.end is not None and is_over else dump.ns,
        error=": ".join(filter(None, (kind, essential_line(error.text)))),
        place=said.raised_at or stack.users,
        out_of_memory=kind in OUT_OF_MEMORY,
        of_the_cluster=kind in OF_THE_CLUSTER and len(capture.environment.training_tasks) > 1,
        of_input=said.of_input or caller is GENERATES,
        of_callback=caller is CALLS_BACK,
        op=said.op,
        defined_at=said.defined_at,
        process_lives=not is_over,
    )


def _memory(capture: Capture) -> Mapping[str, float]:
    """The host's last figures."""
    prefix = Tag.HOST.removeprefix(Tag.ALL)
    return {
        tag.removeprefix(prefix): float(series.value[-1])
        for tag, series in capture.series.items()
        if tag.startswith(prefix) and len(series)
    }


def _was_full(memory: Mapping[str, float]) -> bool:
    limit, rss = memory.get(HostMetric.LIMIT, 0.0), memory.get(HostMetric.RSS, 0.0)
    available = memory.get(HostMetric.AVAILABLE)
    if limit <= 0:
        return False
    nothing_left = available is not None and available <= (1 - FULL_SHARE) * limit
    return rss >= FULL_SHARE * limit or nothing_left
