"""Looks at another process, in the form of the records that a capture inside it would write."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stall_analyzer.captures.capture_format import StopReason, Tag, TrainingPhase
from stall_analyzer.captures.capture_reader import capture_of
from stall_analyzer.captures.capture_records import NS_PER_S, CaptureRecord
from stall_analyzer.captures.look_records import (
    ChildProcess,
    DumpRecord,
    Look,
    Loop,
    NativeThreads,
    ThreadStack,
)
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.event_log import Capture, Series
from stall_analyzer.signals.ending.python_stacks import stack_of
from tb_stall_plugin.capture.attach import py_spy
from tb_stall_plugin.capture.attach.py_spy import PythonFrame, PythonThread
from tb_stall_plugin.capture.attach.refusals import StacksRefused
from tb_stall_plugin.capture.attach.source_code import loop_around
from tb_stall_plugin.capture.attach.target import Target
from tb_stall_plugin.capture.process.child_processes import child_processes, cpu_seconds, stat_of
from tb_stall_plugin.capture.process.host_sampler import HostSampler
from tb_stall_plugin.capture.process.thread_stacks import (
    OWN_THREADS,
    grouped,
    seen_by_kernel,
    threads_in_kernel,
)

# Whoever attaches believes that the process hangs. But if the kernel knows that its main thread
# worked less than this long ago, it is too early to tell.
HANG_S = 10.0
LEAST_SIGHTS = 4  # one more than is needed to say that something stands still
LAST_RAN = re.compile(r"^se\.exec_start\s*:\s*([\d.]+)", re.MULTILINE)  # milliseconds
RUNS_A_FUNCTION = re.compile(r"/polymorphic_function/|/keras/.*trainer\.py$|/engine/training\.py$")


@dataclass(frozen=True)
class Sight:
    """One look at a process."""

    ns: int
    idle_s: float | None  # since its main thread was last on a core
    cpu_s: float
    threads: tuple[ThreadStack, ...]
    children: tuple[ChildProcess, ...]
    native: tuple[NativeThreads, ...]
    host: dict[str, float]

    @property
    def main(self) -> ThreadStack:
        return next((thread for thread in self.threads if thread.main), ThreadStack())


class Observer:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.sights: list[Sight] = []
        self._host = HostSampler(pid=target.pid)

    def look(self) -> None:
        found = self._python_threads()
        self.target.check()
        folder = self.target.folder
        theirs = [thread for thread in found if not thread.name.startswith(OWN_THREADS)]
        self.sights.append(
            Sight(
                ns=time.time_ns(),
                idle_s=idle_seconds(folder, self.target.pid),
                cpu_s=cpu_seconds(stat_of(folder)[1]),
                threads=grouped(map(self._thread, theirs)),
                children=child_processes(folder),
                native=threads_in_kernel(folder, {str(thread.number) for thread in found}),
                host=self._host.sample(),
            )
        )

    def has_seen(self, seconds: float) -> bool:
        """Whether it has looked for that long, and often enough."""
        lasted_ns = self.sights[-1].ns - self.sights[0].ns
        return lasted_ns >= seconds * NS_PER_S and len(self.sights) >= LEAST_SIGHTS

    def _python_threads(self) -> tuple[PythonThread, ...]:
        try:
            found = py_spy.threads_of(self.target.pid)
            if any(_may_be_endless(self._loop(thread.frames)) for thread in found):
                found = py_spy.threads_of(self.target.pid, with_locals=True)
        except StacksRefused:
            self.target.check()  # if it has ended, that is the reason to give
            raise
        return found

    def _thread(self, thread: PythonThread) -> ThreadStack:
        is_main = thread.number == self.target.pid
        seen = ThreadStack(
            name=thread.name,
            main=is_main,
            frames=thread.texts,
            loop=self._loop(thread.frames),
        )
        return seen_by_kernel(seen, str(thread.number), self.target.folder)

    def _loop(self, frames: Iterable[PythonFrame]) -> Loop | None:
        users = (frame for frame in frames if Frame(frame.path, 0, "").is_users)
        frame = next(users, None)
        if frame is None:
            return None
        return loop_around(frame, self.target.folder, self.target.began_unix_s)

    @property
    def capture(self) -> Capture:
        """Looks like a capture from inside the process: a dump, several beats, and a dump."""
        first, *between, last = _with_known_loops(self.sights)
        sign_ns = first.ns - round((first.idle_s or 0.0) * NS_PER_S)
        reason = StopReason.NO_STEP if self._hangs_for_long() else ""
        records: list[CaptureRecord] = [
            replace(self.target.environment, ns=first.ns),
            *(_dump(sight, sign_ns, reason) for sight in (first, last)),
            *(_beat(sight, sign_ns) for sight in between),
        ]
        return capture_of(records, _series(self.sights))[0]

    def _hangs_for_long(self) -> bool:
        first, last = self.sights[0], self.sights[-1]
        stood = first.main.turns is not None and first.main.turns == last.main.turns
        return not stood or last.idle_s is None or last.idle_s >= HANG_S


def _with_known_loops(sights: Sequence[Sight]) -> list[Sight]:
    """A loop counts as empty if one look saw it so: in another look, py-spy may have failed to read
    a variable that was just changing, so that it was not known to be a number."""
    empty = {
        _loop_place(thread)
        for sight in sights
        for thread in sight.threads
        if thread.loop is not None and thread.loop.is_empty
    }

    def known(thread: ThreadStack) -> ThreadStack:
        if thread.loop is None or _loop_place(thread) not in empty:
            return thread
        return replace(thread, loop=replace(thread.loop, is_empty=True))

    return [replace(sight, threads=tuple(map(known, sight.threads))) for sight in sights]


def _loop_place(thread: ThreadStack) -> tuple[object, ...]:
    users, loop = stack_of(thread).users, thread.loop
    return users and users.path, loop and (loop.line, loop.last)


def _beat(sight: Sight, sign_ns: int) -> Look:
    return Look(
        ns=sight.ns,
        step=0,
        idle_s=(sight.ns - sign_ns) / NS_PER_S,
        phase=_phase(sight.main),
        cpu_s=sight.cpu_s,
        threads=sight.threads,
        children=sight.children,
    )


def _dump(sight: Sight, sign_ns: int, reason: str) -> DumpRecord:
    beat = vars(_beat(sight, sign_ns))
    return DumpRecord(**beat, reason=reason, native=sight.native, memory=sight.host)


def _phase(main: ThreadStack) -> str:
    """Whether it is inside a step. From outside, only the frames of fit can tell."""
    stack = stack_of(main)
    in_a_step = stack.is_inside_tensorflow and stack.passes(RUNS_A_FUNCTION)
    return TrainingPhase.TRAIN_BATCH if in_a_step else TrainingPhase.BETWEEN_BATCHES


def _series(sights: Sequence[Sight]) -> dict[str, Series]:
    found = {}
    for name in set.intersection(*(set(sight.host) for sight in sights)):
        values = np.array([sight.host[name] for sight in sights])
        walls = np.array([sight.ns for sight in sights], dtype=np.int64)
        tag = (Tag.HOST + name).removeprefix(Tag.ALL)
        found[tag] = Series(np.zeros(len(sights), np.int64), walls, values)
    return found


def _may_be_endless(loop: Loop | None) -> bool:
    return loop is not None and loop.word == "while"


def idle_seconds(folder: Path, task: int) -> float | None:
    """How long ago the thread last ran on a core. Our own thread, which runs right now, tells what
    the kernel's clock shows. None on kernels that do not tell."""
    times = []
    for path in (folder / "task" / str(task) / "sched", Path("/proc/thread-self/sched")):
        try:
            match = LAST_RAN.search(path.read_text())
        except OSError:
            return None
        if match is None:
            return None
        times.append(float(match[1]) / 1000)
    return max(times[1] - times[0], 0.0)
