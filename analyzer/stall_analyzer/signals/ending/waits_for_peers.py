"""Training waits for other workers of its cluster."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import ThreadStack
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import moment
from stall_analyzer.signals.ending.python_stacks import SETS_UP_CLUSTER, proof, stack_of
from stall_analyzer.signals.ending.scene import COMMUNICATION, PROOF_LINES, Blamed, Scene

# A capture writes every second. A worker last heard from this much earlier has fallen silent; on
# another machine the clock may differ.
SILENT_NS = 3 * NS_PER_S
SILENT_ELSEWHERE_NS = 10 * NS_PER_S


def peers(scene: Scene, thread: ThreadStack) -> Blamed:
    named = _missing(scene.capture, scene.others) or _at_other_places(scene)
    begins = stack_of(thread).passes(SETS_UP_CLUSTER) if scene.is_attached else not scene.last.step
    unnamed = "workers of its cluster that have not joined" if begins else "the other workers"
    return Blamed(
        bucket=COMMUNICATION,
        subject=scene.me,
        waits_in=f"is waiting for {named or unnamed}",
        stack=proof(stack_of(thread), PROOF_LINES),
        confidence=0.9 if named else 0.7,
        kind="peers",
        thread=thread,
    )


def silent_workers(capture: Capture, others: Sequence[Capture]) -> list[Capture]:
    """Workers that were recorded but no longer are."""
    return [other for other in others if _is_silent(capture, other)]


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
    return ", and ".join(absent or silent)


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
