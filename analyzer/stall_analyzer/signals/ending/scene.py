"""A process in which nothing moves, its surroundings, and what it probably waits for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from stall_analyzer.captures.capture_format import StopReason
from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import (
    DumpRecord,
    FixedLoop,
    Look,
    ThreadStack,
    WorkRecord,
)
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.ending.lock_waits import beside_a_deadlock, lock_wait
from stall_analyzer.signals.ending.python_stacks import stack_of
from stall_analyzer.signals.ending.waits import FOR_A_LOCK, Wait, WaitKind, wait_of

COMMUNICATION: Bucket = "communication"
SLEEPS = ("nanosleep", "clock_nanosleep", "hrtimer_nanosleep")
# Before Python 3.11, time.sleep() was a select() without files.
SLEEPS_OF_OLD_PYTHON = ("select", "pselect6")
DISK = "D"
PROOF_LINES = 6
BY_A_SIGNAL = (StopReason.SIGTERM, StopReason.SIGINT)


@dataclass(frozen=True)
class Blamed:
    """What training waits for."""

    bucket: Bucket
    subject: str  # "the generator at train.py:41"
    waits_in: str  # "is waiting in queue.Queue.get()"; empty where nothing says
    stack: tuple[str, ...]  # the lines that prove it
    sleeps: bool = False
    confidence: float = 0.9
    kind: WaitKind = "other"
    thread: ThreadStack = field(default_factory=ThreadStack)  # the one that waits


@dataclass(frozen=True)
class Scene:
    """A process in which nothing moves, and what is known about its surroundings."""

    capture: Capture
    looks: tuple[Look, ...]  # since the last sign of life
    others: Sequence[Capture] = ()  # workers of the same cluster
    has_pipeline: bool = False  # a trace shows tf.data at work

    @property
    def calm(self) -> tuple[Look, ...]:
        """The looks without those that a signal caused: it wakes threads from their waits."""
        calm = [
            x for x in self.looks if not (isinstance(x, DumpRecord) and x.reason in BY_A_SIGNAL)
        ]
        return tuple(calm) or self.looks

    @property
    def last(self) -> Look:
        return self.calm[-1]

    @property
    def me(self) -> str:
        task = self.capture.environment.task
        return str(task) if task is not None else "this process"

    @property
    def is_attached(self) -> bool:
        """Looked at from outside: nothing is known about steps."""
        return self.capture.environment.attached

    @property
    def has_peers(self) -> bool:
        return len(self.capture.environment.training_tasks) > 1

    @property
    def works(self) -> list[WorkRecord]:
        """What TensorFlow was doing in this pause."""
        return [work for work in self._all_works if not work.taken_in and work.fixed is None]

    @property
    def works_of_loops(self) -> list[WorkRecord]:
        """What the user's own for loops went through in the meantime."""
        return [work for work in self._all_works if work.taken_in]

    @property
    def fixed_loop(self) -> FixedLoop | None:
        """The loop as it was last seen."""
        return next((w.fixed for w in reversed(self._all_works) if w.fixed is not None), None)

    @property
    def _all_works(self) -> list[WorkRecord]:
        begin_ns, end_ns = self.looks[0].sign_ns, self.looks[-1].ns + NS_PER_S
        return [work for work in self.capture.works if begin_ns <= work.ns <= end_ns]

    @property
    def dumps(self) -> list[DumpRecord]:
        """The dumps that include the kernel's view."""
        return [look for look in self.looks if isinstance(look, DumpRecord) and look.native]


def wait_in_scene(scene: Scene, thread: ThreadStack) -> Wait | None:
    """What it waits in; None where it may just as well sleep or wait for a disk."""
    threads = scene.last.threads
    wait = lock_wait(thread, threads) or wait_of(stack_of(thread), scene.last.children)
    wait = beside_a_deadlock(wait, threads)
    if wait is not None or thread.wait or thread.main or thread.turns is not None:
        return wait
    # The kernel's view of all threads must do for a thread whose number is not known.
    native = [threads for dump in scene.dumps[-1:] for threads in dump.native]
    if not any(threads.wait for threads in native) or any(t.state == DISK for t in native):
        return None
    calls = sleep_calls(scene)
    in_all = all(any(t.wait in calls for t in dump.native) for dump in scene.dumps)
    return None if in_all else Wait("lock", FOR_A_LOCK)


def sleeps(scene: Scene, thread: ThreadStack) -> bool:
    """Whether it is in time.sleep(), which leaves no frame of its own."""
    return not stack_of(thread).wait and thread.wait in sleep_calls(scene)


def sleep_calls(scene: Scene) -> tuple[str, ...]:
    is_old = re.match(r"3\.(\d|10)\b", scene.capture.environment.python)
    return (*SLEEPS, *SLEEPS_OF_OLD_PYTHON) if is_old else SLEEPS
