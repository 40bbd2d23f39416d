"""What a training that does not go on waits for, from the stacks of its threads.

The main thread tells most: it is in the user's own code, or inside of TensorFlow. There it waits
for Python that TensorFlow called (a generator, a py_function), for other workers, or for its next
batch. Where nothing says which, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stall_analyzer.captures.capture_format import TrainingPhase
from stall_analyzer.captures.capture_records import NS_PER_S, DumpRecord, Look
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import moment
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.ending.python_stacks import (
    CALLS_BACK,
    CALLS_PYTHON,
    GENERATES,
    SETS_UP_CLUSTER,
    Stack,
    proof,
    stack_of,
)

COMMUNICATION: Bucket = "communication"
# A capture writes every second. A worker that was heard of so much earlier has fallen silent; on
# another machine the clock may differ.
SILENT_NS = 3 * NS_PER_S
SILENT_ELSEWHERE_NS = 10 * NS_PER_S
SLEEPS = ("nanosleep", "clock_nanosleep", "hrtimer_nanosleep")
# Before Python 3.11, time.sleep() was a select() without files.
SLEEPS_OF_OLD_PYTHON = ("select", "pselect6")
DISK = "D"
# What a system call without a frame of its own waits for. A disk is left out: it may still answer.
FOR_A_LOCK = "waits for a lock, or for another thread,"
WAITS_FOR = {
    "futex": FOR_A_LOCK,
    **dict.fromkeys(("wait4", "waitid"), "waits for another process"),
    **dict.fromkeys(
        ("read", "recvfrom", "recvmsg", "poll", "ppoll", "select", "pselect6", "epoll_wait",
         "epoll_pwait", "epoll_pwait2", "accept", "accept4", "connect"),
        "waits for an answer from outside",
    ),
}  # fmt: skip
PROOF_LINES = 6


@dataclass(frozen=True)
class Blamed:
    """What training waits for."""

    bucket: Bucket
    subject: str  # "the generator at train.py:41"
    waits_in: str  # "waits in queue.Queue.get()"; empty where nothing says
    stack: tuple[str, ...]  # the lines that prove it
    sleeps: bool = False
    confidence: float = 0.9


@dataclass(frozen=True)
class Scene:
    """A process in which nothing moves, and what is known around it."""

    capture: Capture
    looks: tuple[Look, ...]  # since the last sign of life
    others: Sequence[Capture] = ()  # workers of the same cluster
    has_pipeline: bool = False  # a trace shows tf.data at work

    @property
    def last(self) -> Look:
        return self.looks[-1]

    @property
    def me(self) -> str:
        task = self.capture.environment.task
        return str(task) if task is not None else "this process"

    @property
    def has_peers(self) -> bool:
        return len(self.capture.environment.training_tasks) > 1

    @property
    def dumps(self) -> list[DumpRecord]:
        """Those that hold the kernel's view."""
        return [look for look in self.looks if isinstance(look, DumpRecord) and look.native]


def blamed(scene: Scene) -> Blamed | None:
    if scene.last.main is None:
        return None
    main = stack_of(scene.last.main)
    if not main.is_inside_tensorflow:
        return _python_of_main(scene, main)
    if main.passes(SETS_UP_CLUSTER) and scene.last.step == 0:
        return _peers(scene, main)
    called = [stack_of(thread) for thread in scene.last.threads if not thread.main]
    called = [stack for stack in called if is_called_by_tensorflow(stack)]
    if called:
        return _python_for_tensorflow(scene, called)
    if main.fetches:
        return _fetch(main)
    return _peers(scene, main) if scene.has_peers else _runtime(scene, main)


def is_called_by_tensorflow(stack: Stack) -> bool:
    return stack.passes(CALLS_PYTHON) or stack.passes(GENERATES)


def silent_workers(capture: Capture, others: Sequence[Capture]) -> list[Capture]:
    """Workers that were recorded, and are not any more."""
    return [other for other in others if _is_silent(capture, other)]


def _python_of_main(scene: Scene, main: Stack) -> Blamed | None:
    if main.passes(GENERATES):
        return _python(scene, main, "input", "data")
    return _python(
        scene, main, "host", "callback" if main.passes(CALLS_BACK) else "training script"
    )


def _python_for_tensorflow(scene: Scene, stacks: Sequence[Stack]) -> Blamed | None:
    """A generator or a function that TensorFlow called and that does not return."""
    stack = next((stack for stack in stacks if stack.users is not None), stacks[0])
    if stack.passes(GENERATES):
        return _python(scene, stack, "input", "generator")
    return _python(scene, stack, "input" if scene.has_pipeline else "host", "Python function")


def _python(scene: Scene, stack: Stack, bucket: Bucket, what: str) -> Blamed | None:
    place = stack.users or stack.owner
    if place is None:
        return None
    return Blamed(
        bucket=bucket,
        subject=f"the {what} at {place.place}",
        waits_in=_wait(scene, stack),
        stack=proof(stack, PROOF_LINES),
        sleeps=_sleeps(scene, stack),
    )


def _fetch(main: Stack) -> Blamed:
    place = main.users
    return Blamed(
        bucket="input",
        subject=f"the training script at {place.place}" if place is not None else "the step",
        waits_in=f"waits for its next batch ({main.frames[0].name})",
        stack=proof(main, PROOF_LINES),
    )


def _runtime(scene: Scene, main: Stack) -> Blamed | None:
    """Inside of TensorFlow, with no Python that could hold it up. A GPU may hang as well."""
    devices = scene.capture.environment.devices or ()
    only_cpu = bool(devices) and all("CPU" in device.upper() for device in devices)
    if scene.last.phase != TrainingPhase.TRAIN_BATCH or not only_cpu or not scene.has_pipeline:
        return None
    return Blamed(
        bucket="input",
        subject="the step",
        waits_in="waits inside TensorFlow, most likely for its next batch,",
        stack=proof(main, PROOF_LINES),
        confidence=0.6,
    )


def _peers(scene: Scene, main: Stack) -> Blamed:
    named = _missing(scene.capture, scene.others)
    unnamed = (
        "the other workers" if scene.last.step else "workers of its cluster that have not come"
    )
    return Blamed(
        bucket=COMMUNICATION,
        subject=scene.me,
        waits_in=f"waits for {named or unnamed}",
        stack=proof(main, PROOF_LINES),
        confidence=0.9 if named else 0.7,
    )


def _missing(capture: Capture, others: Sequence[Capture]) -> str:
    """Which workers do not answer, as far as their own captures tell. Where some never came, those
    that have fallen silent may only wait for them, too."""
    heard = {other.environment.task: other for other in others}
    absent, silent = [], []
    for task in capture.environment.training_tasks:
        other = heard.get(task)
        if task == capture.environment.task:
            continue
        if other is None:
            absent.append(f"{task}, which has left no record here")
        elif _is_silent(capture, other):
            silent.append(f"{task}, which was last heard of at {moment(other.last_ns)}")
    return " and ".join(absent or silent)


def _is_silent(capture: Capture, other: Capture) -> bool:
    here = capture.environment.host == other.environment.host
    late_ns = SILENT_NS if here else SILENT_ELSEWHERE_NS
    return other.end is not None or other.last_ns < capture.last_ns - late_ns


def _wait(scene: Scene, stack: Stack) -> str:
    """What it waits in, in words; empty where it may as well sleep or wait for a disk."""
    if stack.wait:
        return f"waits in {stack.wait}"
    if stack.system_call:
        return WAITS_FOR.get(stack.system_call, "")
    # Of a thread that TensorFlow started, the kernel's view of all threads must do.
    native = [threads for dump in scene.dumps[-1:] for threads in dump.native]
    if not any(threads.wait for threads in native) or any(t.state == DISK for t in native):
        return ""
    sleeps = _sleep_calls(scene)
    in_all = all(any(t.wait in sleeps for t in dump.native) for dump in scene.dumps)
    return "" if in_all else FOR_A_LOCK


def _sleeps(scene: Scene, stack: Stack) -> bool:
    """Whether it is in time.sleep(), which leaves no frame of its own."""
    return not stack.wait and stack.system_call in _sleep_calls(scene)


def _sleep_calls(scene: Scene) -> tuple[str, ...]:
    is_old = re.match(r"3\.(\d|10)\b", scene.capture.environment.python)
    return (*SLEEPS, *SLEEPS_OF_OLD_PYTHON) if is_old else SLEEPS
