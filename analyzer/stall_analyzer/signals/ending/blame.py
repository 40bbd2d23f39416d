"""What training without progress is waiting for, according to the stacks of its threads.

The main thread says the most: it is in the user's own code, or inside TensorFlow. Inside TensorFlow
it waits for Python that TensorFlow called (a generator, a py_function), for other workers, or for
its next batch. Where nothing shows which, nothing is reported.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import TrainingPhase
from stall_analyzer.captures.look_records import ThreadStack
from stall_analyzer.signals.ending.python_stacks import (
    ASKS_SERVICE,
    CALLS_PYTHON,
    FITS,
    GENERATES,
    SETS_UP_CLUSTER,
    Stack,
    stack_of,
)
from stall_analyzer.signals.ending.scene import Blamed, Scene
from stall_analyzer.signals.ending.waits import wait_of
from stall_analyzer.signals.ending.waits_for_peers import peers
from stall_analyzer.signals.ending.waits_in_python import (
    exit_handler,
    keeps_alive,
    python_for_tensorflow,
    python_of_main,
)
from stall_analyzer.signals.ending.waits_in_tensorflow import fetch, runtime, service


def blamed(scene: Scene) -> Blamed | None:
    thread = scene.last.main
    if thread is None:
        return None
    thread = _who_trains(scene, thread)
    main = stack_of(thread)
    if main.exits:
        return keeps_alive(scene)
    if scene.last.phase == TrainingPhase.EXIT:
        return exit_handler(scene, thread)
    if not main.is_inside_tensorflow:
        return python_of_main(scene, thread)
    if main.passes(SETS_UP_CLUSTER) and scene.last.step == 0:
        return peers(scene, thread)
    if main.passes(ASKS_SERVICE):
        return service(thread)
    called = [
        t for t in scene.last.threads if t is not thread and is_called_by_tensorflow(stack_of(t))
    ]
    if called:
        return python_for_tensorflow(scene, called)
    if main.fetches:
        return fetch(thread)
    return peers(scene, thread) if scene.has_peers else runtime(scene, thread)


def _who_trains(scene: Scene, main: ThreadStack) -> ThreadStack:
    """The main thread, unless it only waits for another one, which is in fit."""
    wait = wait_of(stack_of(main))
    if wait is None or wait.kind not in ("thread", "future", "event"):
        return main
    others = [t for t in scene.last.threads if not t.main and stack_of(t).passes(FITS)]
    return others[0] if len(others) == 1 else main


def is_called_by_tensorflow(stack: Stack) -> bool:
    return stack.passes(CALLS_PYTHON) or stack.passes(GENERATES)
