"""What a strategy's replica threads were seen doing.

A strategy builds the step of each replica in a thread of its own, one after the other, and the
training thread waits for each. So what these threads run is what the training thread is doing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.sampled_stacks import SeenStack

# In TensorFlow 2.21; the file and both names have been the same since 2.1.
FILE = "/tensorflow/python/distribute/mirrored_run.py"
WAITS, RUNS = "_call_for_each_replica", "run"


def with_replica_threads(
    mine: Sequence[SeenStack], background: Sequence[SeenStack]
) -> list[SeenStack]:
    """The training thread's stacks. While it waits for its replicas, theirs count instead: those
    that are only a library's were not recorded, so the rest of that time stays with the wait."""
    waits = [stack for stack in mine if _waits_for_replicas(stack)]
    replicas = [stack for stack in background if any(_is(f, RUNS) for f in stack.frames)]
    waited_ns, ran_ns = _seen_ns(waits), _seen_ns(replicas)
    if not waited_ns or not ran_ns:
        return list(mine)
    part = min(ran_ns / waited_ns, 1.0)
    others = [stack for stack in mine if not _waits_for_replicas(stack)]
    return [
        *others,
        *(_scaled(stack, 1 - part) for stack in waits),
        *(_scaled(stack, part * waited_ns / ran_ns) for stack in replicas),
    ]


def _waits_for_replicas(stack: SeenStack) -> bool:
    """Not so while it merges what they have made."""
    caller = next((frame for frame in stack.frames if not frame.is_standard), None)
    return caller is not None and caller is not stack.frames[0] and _is(caller, WAITS)


def _is(frame: Frame, name: str) -> bool:
    return frame.name == name and frame.path.replace("\\", "/").endswith(FILE)


def _seen_ns(stacks: Sequence[SeenStack]) -> int:
    return sum(stack.seen.seen_ns for stack in stacks)


def _scaled(stack: SeenStack, by: float) -> SeenStack:
    return replace(stack, seen=replace(stack.seen, seen_ns=round(by * stack.seen.seen_ns)))
