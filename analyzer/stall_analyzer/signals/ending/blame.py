"""What a training without progress is waiting for, according to the stacks of its threads.

The main thread says the most: it is in the user's own code, or inside TensorFlow. Inside TensorFlow
it waits for Python that TensorFlow called (a generator, a py_function), for other workers, or for
its next batch. Where nothing shows which, nothing is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace

from stall_analyzer.captures.capture_format import StopReason, TrainingPhase
from stall_analyzer.captures.capture_records import (
    NS_PER_S,
    DumpRecord,
    FixedLoop,
    InputStage,
    Look,
    ThreadStack,
    WorkRecord,
)
from stall_analyzer.captures.stack_frames import frame_of
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import moment
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.ending.lock_waits import beside_a_deadlock, lock_wait
from stall_analyzer.signals.ending.python_stacks import (
    ASKS_SERVICE,
    CALLS_BACK,
    CALLS_PYTHON,
    FITS,
    GENERATES,
    IMPORTS,
    SETS_UP_CLUSTER,
    TOP_LEVEL,
    TRACES,
    Stack,
    module_of,
    proof,
    stack_of,
)
from stall_analyzer.signals.ending.waits import FOR_A_LOCK, Wait, WaitKind, wait_in_call, wait_of

COMMUNICATION: Bucket = "communication"
MEETS = ("wait", "wait_for")  # not `acquire`: a lock is held, not met at
THREADING = pattern(r"/threading\.py$")
SPEAKS = ("socket", "multiprocessing.connection")
# A capture writes every second. A worker last heard from this much earlier has fallen silent; on
# another machine the clock may differ.
SILENT_NS = 3 * NS_PER_S
SILENT_ELSEWHERE_NS = 10 * NS_PER_S
SLEEPS = ("nanosleep", "clock_nanosleep", "hrtimer_nanosleep")
# Before Python 3.11, time.sleep() was a select() without files.
SLEEPS_OF_OLD_PYTHON = ("select", "pselect6")
DISK = "D"
OF_WORKERS = pattern("Collective|_?Recv")
SERVICE = pattern("DataService")
PROOF_LINES = 6
BY_A_SIGNAL = (StopReason.SIGTERM, StopReason.SIGINT)


@dataclass(frozen=True)
class Blamed:
    """What training waits for."""

    bucket: Bucket
    subject: str  # "the generator at train.py:41"
    waits_in: str  # "waits in queue.Queue.get()"; empty where nothing says
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


def blamed(scene: Scene) -> Blamed | None:
    thread = scene.last.main
    if thread is None:
        return None
    thread = _who_trains(scene, thread)
    main = stack_of(thread)
    if main.exits:
        return _keeps_alive(scene)
    if scene.last.phase == TrainingPhase.EXIT:
        return _exit_handler(scene, thread)
    if not main.is_inside_tensorflow:
        return _python_of_main(scene, thread)
    if main.passes(SETS_UP_CLUSTER) and scene.last.step == 0:
        return _peers(scene, thread)
    if main.passes(ASKS_SERVICE):
        return _service(thread)
    called = [
        t for t in scene.last.threads if t is not thread and is_called_by_tensorflow(stack_of(t))
    ]
    if called:
        return _python_for_tensorflow(scene, called)
    if main.fetches:
        return _fetch(thread)
    return _peers(scene, thread) if scene.has_peers else _runtime(scene, thread)


def _who_trains(scene: Scene, main: ThreadStack) -> ThreadStack:
    """The main thread, unless it only waits for another one, which is in fit."""
    wait = wait_of(stack_of(main))
    if wait is None or wait.kind not in ("thread", "future", "event"):
        return main
    others = [t for t in scene.last.threads if not t.main and stack_of(t).passes(FITS)]
    return others[0] if len(others) == 1 else main


def is_called_by_tensorflow(stack: Stack) -> bool:
    return stack.passes(CALLS_PYTHON) or stack.passes(GENERATES)


def silent_workers(capture: Capture, others: Sequence[Capture]) -> list[Capture]:
    """Workers that were recorded but no longer are."""
    return [other for other in others if _is_silent(capture, other)]


def _python_of_main(scene: Scene, thread: ThreadStack) -> Blamed | None:
    main = stack_of(thread)
    if main.users_caller(GENERATES, CALLS_BACK) is CALLS_BACK:
        return _python(scene, thread, "host", "callback")  # whatever data it reads itself
    if main.passes(GENERATES):
        return _python(scene, thread, "input", "data")
    if main.passes(TRACES):
        return _python(scene, thread, "compile", "function that is being traced,")
    if main.passes(CALLS_BACK):
        return _python(scene, thread, "host", "callback")
    found = _python(scene, thread, "host", "training script")
    if found is None:
        return None
    if found.kind == "queue" and thread.loop is not None:
        return replace(found, bucket="input", confidence=0.7)  # a loop takes its data from it
    if _meets_processes(main) or _joins_replicas(scene, found):
        return replace(found, bucket=COMMUNICATION, confidence=0.7)
    is_own = main.owner is not None and main.owner.is_users
    if is_own and _is_for_data(scene, main):
        return replace(found, bucket="input", confidence=0.7)
    if _speaks_with_a_peer(found, main):
        return replace(found, bucket=COMMUNICATION, confidence=0.7)
    return found


def _meets_processes(stack: Stack) -> bool:
    """Whether it waits at a barrier, or for a condition or event, that processes share."""
    return any(
        module_of(frame) == "multiprocessing.synchronize" and frame.name in MEETS
        for frame in stack.library_calls
    )


def _is_for_data(scene: Scene, main: Stack) -> bool:
    """Whether a dump that found it at the same line of the script says so."""
    dumps = [d for d in scene.capture.dumps if d.for_data and d.main is not None]
    lines = {(f.path, f.line) for d in dumps if d.main for f in stack_of(d.main).all_users[-1:]}
    return any((frame.path, frame.line) in lines for frame in main.all_users[-1:])


def _joins_replicas(scene: Scene, found: Blamed) -> bool:
    """Whether it waits for threads, one of which waits for the others at a barrier."""
    calls = (f for t in scene.last.threads if not t.main for f in stack_of(t).library_calls)
    at_barrier = any(f.function.startswith("Barrier.") and f.is_of(THREADING) for f in calls)
    return found.kind == "thread" and at_barrier


def _speaks_with_a_peer(found: Blamed, stack: Stack) -> bool:
    """Whether a function or a loop of the script itself uses the socket or pipe: then it talks to
    another process of the job, not to a server through a library or during an import."""
    innermost = next((f for f in stack.frames if module_of(f) not in SPEAKS), None)
    if (
        found.kind not in ("socket", "connection")
        or innermost is None
        or not innermost.is_users
        or stack.passes(IMPORTS)
    ):
        return False
    is_called = stack.loop is not None or innermost.name != TOP_LEVEL
    return is_called or stack.system_call.startswith("accept")


def _python_for_tensorflow(scene: Scene, threads: Sequence[ThreadStack]) -> Blamed | None:
    """A generator or function that TensorFlow called and that does not return."""
    thread = next((t for t in threads if stack_of(t).users is not None), threads[0])
    if stack_of(thread).passes(GENERATES):
        return _python(scene, thread, "input", "generator")
    return _python(scene, thread, "input" if scene.has_pipeline else "host", "Python function")


def _python(scene: Scene, thread: ThreadStack, bucket: Bucket, what: str) -> Blamed | None:
    stack = stack_of(thread)
    place = stack.users or stack.owner
    if place is None:
        return None
    wait = None if sleeps(scene, thread) else _wait(scene, thread)
    return Blamed(
        bucket=bucket,
        subject=f"the {what} at {place.place}",
        waits_in=wait.words if wait is not None else "",
        stack=proof(stack, PROOF_LINES),
        sleeps=sleeps(scene, thread),
        kind=wait.kind if wait is not None else "other",
        thread=thread,
    )


def _keeps_alive(scene: Scene) -> Blamed | None:
    """The program is over, but a thread that is not a daemon is still running."""
    alive = [t for t in scene.last.threads if t.keeps_alive and not t.main]
    thread = next(iter(alive), scene.last.main)
    assert thread is not None
    stack, wait = stack_of(thread), _wait(scene, thread)
    at = f" at {stack.users.place}" if stack.users is not None else ""
    name = "it"
    if alive:
        name = f"the thread {thread.name or 'without a name'}{at}, which is not a daemon,"
    does = wait.words if wait is not None else "is still running"
    return Blamed(
        bucket="host",
        subject="the process does not exit:",
        waits_in=f"{name} {does}",
        stack=proof(stack, PROOF_LINES),
        kind="exit",
        thread=thread,
    )


def _exit_handler(scene: Scene, thread: ThreadStack) -> Blamed:
    """The program and the capture are over, but an exit handler is still running."""
    stack, wait = stack_of(thread), _wait(scene, thread)
    at = f" at {stack.users.place}" if stack.users is not None else ""
    sleeping = sleeps(scene, thread)
    return Blamed(
        bucket="host",
        subject=f"the process does not exit: its exit handler{at}",
        waits_in=wait.words if wait is not None and not sleeping else "",
        stack=proof(stack, PROOF_LINES),
        sleeps=sleeping,
        kind=wait.kind if wait is not None else "other",
        thread=thread,
    )


def _fetch(thread: ThreadStack) -> Blamed:
    main = stack_of(thread)
    place = main.users
    return Blamed(
        bucket="input",
        subject=f"the training script at {place.place}" if place is not None else "the step",
        waits_in=f"waits for its next batch ({main.frames[0].name})",
        stack=proof(main, PROOF_LINES),
        kind="batch",
        thread=thread,
    )


def _service(thread: ThreadStack) -> Blamed:
    main = stack_of(thread)
    at = f" at {main.users.place}" if main.users is not None else ""
    return Blamed(
        bucket="input",
        subject=f"the training script{at}",
        waits_in="waits for the tf.data service, which does not answer,",
        stack=proof(main, PROOF_LINES),
        kind="service",
        thread=thread,
    )


def _runtime(scene: Scene, thread: ThreadStack) -> Blamed | None:
    """Inside TensorFlow, with no Python that could hold it up. A GPU may hang as well."""
    devices = scene.capture.environment.devices or ()
    only_cpu = bool(devices) and all("CPU" in device.upper() for device in devices)
    is_step = scene.last.phase in (TrainingPhase.TRAIN_BATCH, TrainingPhase.VALIDATION)
    main = stack_of(thread)
    at = f" of {main.users.place}" if main.users is not None else ""
    wait = wait_in_call(thread.wait, thread.on) or _native_wait(scene)
    if wait is not None:
        return Blamed(
            bucket="input" if is_step else "host",
            subject=f"TensorFlow, in the {'step' if is_step else 'op'}{at},",
            waits_in=wait.words,
            stack=proof(main, PROOF_LINES),
            kind=wait.kind,
            confidence=0.8,
            thread=thread,
        )
    if (found := _graph_wait(scene, thread)) is not None:
        return found
    stages = _stages(scene)
    if any(SERVICE.search(stage.name) for stage in stages):
        return _service(thread)
    if not is_step or not only_cpu or not (scene.has_pipeline or stages):
        stack = proof(main, PROOF_LINES)
        bucket: Bucket = "host" if main.passes(CALLS_BACK) else "unknown"
        return Blamed(bucket, f"TensorFlow, in the step{at},", "", stack, thread=thread)
    return Blamed(
        bucket="input",
        subject=f"the step{at}",
        waits_in="waits inside TensorFlow, most likely for its next batch,",
        stack=proof(main, PROOF_LINES),
        confidence=0.6,
        kind="runtime",
        thread=thread,
    )


def _stages(scene: Scene) -> tuple[InputStage, ...]:
    """The stages of input that is asked for a batch but produces nothing; empty if it does."""
    works = scene.works
    moves = len(works) > 1 and works[0].counts != works[-1].counts
    is_ready = any(count.buffered for work in works[-1:] for count in work.counts)
    return works[-1].stages if works and not moves and not is_ready else ()


def _graph_wait(scene: Scene, thread: ThreadStack) -> Blamed | None:
    """An op that is made to wait, in a graph that does not return."""
    works = scene.works
    if not works or not works[-1].waits:
        return None
    op, frame = works[-1].waits[0].op, frame_of(works[-1].waits[0].where)
    main = stack_of(thread)
    called = f", called at {main.users.place}," if main.users is not None else ""
    bucket: Bucket = "input" if "Dequeue" in op or "Unstage" in op else "host"
    if OF_WORKERS.match(op):
        bucket = COMMUNICATION
    return Blamed(
        bucket=bucket,
        subject=f"TensorFlow, in {op}{f' at {frame.place}' if frame is not None else ''}{called}",
        waits_in="waits for others that never come,",
        stack=proof(main, PROOF_LINES),
        confidence=0.8,
        kind="graph_wait",
        thread=thread,
    )


def _native_wait(scene: Scene) -> Wait | None:
    """The wait of a TensorFlow thread for the same file or connection in all dumps."""
    seen = [{(t.wait, t.on) for t in dump.native if not t.python} for dump in scene.dumps]
    always = sorted(set.intersection(*seen)) if seen else []
    waits = (wait_in_call(call, on) for call, on in always)
    return next((wait for wait in waits if wait is not None), None)


def _peers(scene: Scene, thread: ThreadStack) -> Blamed:
    named = _missing(scene.capture, scene.others) or _at_other_places(scene)
    begins = stack_of(thread).passes(SETS_UP_CLUSTER) if scene.is_attached else not scene.last.step
    unnamed = "workers of its cluster that have not joined" if begins else "the other workers"
    return Blamed(
        bucket=COMMUNICATION,
        subject=scene.me,
        waits_in=f"waits for {named or unnamed}",
        stack=proof(stack_of(thread), PROOF_LINES),
        confidence=0.9 if named else 0.7,
        kind="peers",
        thread=thread,
    )


def _missing(capture: Capture, others: Sequence[Capture]) -> str:
    """Which workers do not answer, as far as their own captures tell. If some never came, those
    that have fallen silent may only be waiting for them, too."""
    heard = {other.environment.task: other for other in others}
    absent, silent = [], []
    for task in capture.environment.training_tasks:
        other = heard.get(task)
        if task == capture.environment.task:
            continue
        if other is None and not capture.environment.attached:  # it may run on another machine
            absent.append(f"{task}, which has left no record here")
        elif other is not None and _is_silent(capture, other):
            silent.append(f"{task}, which was last heard from at {moment(other.last_ns)}")
    return " and ".join(absent or silent)


def _at_other_places(scene: Scene) -> str:
    """All are there, but one is at another line and will not come to this one."""
    here = stack_of(scene.last.main).users if scene.last.main is not None else None
    for other in scene.others:
        main = other.looks[-1].main if other.looks else None
        there = stack_of(main).users if main is not None else None
        if here is not None and there is not None and there.place != here.place:
            return f"{other.environment.task or 'another worker'}, which is at {there.place}"
    return ""


def _is_silent(capture: Capture, other: Capture) -> bool:
    here = capture.environment.host == other.environment.host
    late_ns = SILENT_NS if here else SILENT_ELSEWHERE_NS
    return other.end is not None or other.last_ns < capture.last_ns - late_ns


def _wait(scene: Scene, thread: ThreadStack) -> Wait | None:
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
