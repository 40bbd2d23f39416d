"""Training waits in Python: in the script itself, or where Keras or TensorFlow calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stall_analyzer.captures.look_records import ThreadStack
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.patterns import pattern
from stall_analyzer.signals.ending.python_stacks import (
    CALLS_BACK,
    GENERATES,
    IMPORTS,
    TOP_LEVEL,
    TRACES,
    Stack,
    module_of,
    proof,
    stack_of,
)
from stall_analyzer.signals.ending.scene import (
    COMMUNICATION,
    PROOF_LINES,
    Blamed,
    Scene,
    sleeps,
    wait_in_scene,
)

MEETS = ("wait", "wait_for")  # not `acquire`: a lock is held, not met at
THREADING = pattern(r"/threading\.py$")
SPEAKS = ("socket", "multiprocessing.connection")
DOES_NOT_EXIT = "the process does not exit:"


def python_of_main(scene: Scene, thread: ThreadStack) -> Blamed | None:
    main = stack_of(thread)
    if main.users_caller(GENERATES, CALLS_BACK) is CALLS_BACK:
        return _python(scene, thread, "host", "callback")  # whatever data it reads itself
    if main.passes(GENERATES):
        return _python(scene, thread, "input", "data")
    if main.passes(TRACES):
        return _python(scene, thread, "compile", "traced function")
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


def python_for_tensorflow(scene: Scene, threads: Sequence[ThreadStack]) -> Blamed | None:
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
    wait = None if sleeps(scene, thread) else wait_in_scene(scene, thread)
    return Blamed(
        bucket=bucket,
        subject=f"the {what} at {place.place}",
        waits_in=wait.words if wait is not None else "",
        stack=proof(stack, PROOF_LINES),
        sleeps=sleeps(scene, thread),
        kind=wait.kind if wait is not None else "other",
        thread=thread,
    )


def keeps_alive(scene: Scene) -> Blamed | None:
    """The program is over, but a thread that is not a daemon is still running."""
    alive = [t for t in scene.last.threads if t.keeps_alive and not t.main]
    thread = next(iter(alive), scene.last.main)
    assert thread is not None
    stack, wait = stack_of(thread), wait_in_scene(scene, thread)
    at = f" at {stack.users.place}" if stack.users is not None else ""
    who = "it"
    if alive:
        who = f"the thread {thread.name or 'without a name'}{at}, which is not a daemon,"
    return Blamed(
        bucket="host",
        subject=f"{DOES_NOT_EXIT} {who}",
        waits_in=wait.words if wait is not None else "is still running",
        stack=proof(stack, PROOF_LINES),
        kind="exit",
        thread=thread,
    )


def exit_handler(scene: Scene, thread: ThreadStack) -> Blamed:
    """The program and the capture are over, but an exit handler is still running."""
    stack, wait = stack_of(thread), wait_in_scene(scene, thread)
    at = f" at {stack.users.place}" if stack.users is not None else ""
    sleeping = sleeps(scene, thread)
    return Blamed(
        bucket="host",
        subject=f"{DOES_NOT_EXIT} its exit handler{at}",
        waits_in=wait.words if wait is not None and not sleeping else "",
        stack=proof(stack, PROOF_LINES),
        sleeps=sleeping,
        kind=wait.kind if wait is not None else "other",
        thread=thread,
    )
