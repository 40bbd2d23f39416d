"""What Python does when it computes the whole time: run an endless loop, or build graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from stall_analyzer.captures.look_records import Loop
from stall_analyzer.captures.stack_frames import frame_of
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.ending.blame import blamed
from stall_analyzer.signals.ending.python_stacks import TRACES, Stack, proof, stack_of
from stall_analyzer.signals.ending.scene import PROOF_LINES, Blamed, Scene
from stall_analyzer.signals.ending.standing import LEAST_LOOKS, MOSTLY, OUTSIDE_OF_FIT, spins_in

# Waits that another thread of this process may end.
FOR_THREADS = ("thread", "future", "event", "lock", "queue", "full_queue", "exit")


def fixed_loop(scene: Scene) -> Blamed | None:
    """A loop in the user's code that gets the same values in each round, and has not ended."""
    loop = scene.fixed_loop
    frame = frame_of(loop.where) if loop is not None else None
    if loop is None or frame is None:
        return None
    for thread in scene.last.threads:
        same = [f for f in stack_of(thread).frames if f.path == frame.path]
        if any(f.function == frame.function and frame.line <= f.line <= loop.last for f in same):
            reason = blamed(scene)
            bucket: Bucket = reason.bucket if reason is not None else "host"
            bucket = "host" if bucket == "unknown" else bucket
            if "NaN" in loop.values and bucket != "input":
                bucket = "numerics"
            rounds = f"in each of at least {loop.rounds} rounds"
            does = f"never ends: {loop.values} {rounds}"
            subject = f"the while loop at {frame.place}"
            stack = proof(stack_of(thread), PROOF_LINES)
            return Blamed(bucket, subject, does, stack, confidence=0.8, thread=thread)
    return None


def often_traced(scene: Scene) -> tuple[str, Blamed] | None:
    """Functions that are being traced in many of the looks: how many, and which."""
    mains = [(look, stack_of(look.main)) for look in scene.calm if look.main is not None]
    tracing = [(look, stack) for look, stack in mains if stack.passes(TRACES)]
    again = _is_traced_again([stack for _, stack in mains])
    # What a new graph does in its first run, before it computes anything, looks like computing.
    least = max(LEAST_LOOKS, (MOSTLY / 2 if again else MOSTLY) * len(mains))
    if len(tracing) < least:
        return None
    reason = blamed(replace(scene, looks=tuple(look for look, _ in tracing)))
    if reason is None or reason.bucket != "compile":
        return None
    caller = tracing[-1][1].users_around(TRACES)
    called = f", called at {caller.place}," if caller is not None else ""
    does = "was being traced again" if again else "was being traced"
    looked = f"{len(tracing)} of the {len(mains)} times the capture looked"
    why = f"{looked}, a function{called} {does}"
    return f"{why} ({reason.subject.rpartition(' ')[2]})", reason


def _is_traced_again(stacks: Sequence[Stack]) -> bool:
    """Whether a function is traced again after something else."""
    traced = [stack.traced for stack in stacks]
    begun = [now for before, now in pairwise([None, *traced]) if now is not None and now != before]
    return len(set(begun)) < len(begun)


def endless_loop(scene: Scene, reason: Blamed) -> tuple[str, Blamed] | None:
    """The thread in question, or one that it waits for, is in a loop that its code cannot end."""
    loop = spins_in(scene, reason.thread)
    if loop is None or not _may_not_go_on(scene, loop):
        return _awaited_spins(scene, reason)
    what = "has no way out" if loop.has_no_end else "calls no function"
    looked = f"all {len(scene.calm)} times the capture looked"
    why = f"{looked}, the thread was in this loop, which {what}"
    return why, replace(reason, waits_in=_goes_round(loop))


def _awaited_spins(scene: Scene, reason: Blamed) -> tuple[str, Blamed] | None:
    """It waits for another thread, which runs in a loop that calls nothing."""
    if reason.kind not in FOR_THREADS:
        return None
    for thread in scene.last.threads:
        users = stack_of(thread).users
        loop = spins_in(scene, thread) if users is not None and not thread.main else None
        if users is not None and loop is not None and loop.is_empty:
            subject = f"{reason.subject} is waiting for the thread at {users.place}, which"
            why = (
                f"all {len(scene.calm)} times the capture looked, that thread was in this loop, "
                "which calls no function"
            )
            found = replace(reason, subject=subject, waits_in=_goes_round(loop), thread=thread)
            return why, found
    return None


def _may_not_go_on(scene: Scene, loop: Loop) -> bool:
    """Outside fit, or where nothing is known about steps, a loop without a way out may be intended:
    it trains, or serves requests."""
    is_in_fit = scene.last.phase not in OUTSIDE_OF_FIT and not scene.is_attached
    return loop.is_empty or is_in_fit


def _goes_round(loop: Loop) -> str:
    lines = f"line {loop.line}" if loop.line == loop.last else f"lines {loop.line} to {loop.last}"
    return f"is in a while loop ({lines}) that does not end"
