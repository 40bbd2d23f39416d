"""All threads of a process as a capture last saw them; first the one that holds up training."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.captures.look_records import ThreadStack
from stall_analyzer.captures.stack_frames import OURS
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.findings import SeenThread
from stall_analyzer.signals.ending.lock_waits import lock_wait
from stall_analyzer.signals.ending.python_stacks import Stack, stack_of
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.ending.waits import wait_of


def seen_threads(capture: Capture | None, stall: Stall | None) -> tuple[SeenThread, ...]:
    """Threads in the same place count as one."""
    blamed = stall.blamed.thread if stall is not None and stall.blamed is not None else None
    looks = capture.looks if capture is not None else ()
    threads = stall.threads if stall is not None else looks[-1].threads if looks else ()
    seen = [_seen(thread, threads, thread == blamed) for thread in threads]
    return tuple(sorted(seen, key=lambda thread: (not thread.blamed, not thread.main)))


def _seen(thread: ThreadStack, threads: Sequence[ThreadStack], is_blamed: bool) -> SeenThread:
    stack = stack_of(thread)
    wait = lock_wait(thread, threads) or wait_of(stack)
    place = stack.users or stack.owner
    does = (
        wait.words.rstrip(",")
        if wait is not None
        else f"is in {thread.wait}"
        if thread.wait
        else ""
    )
    return SeenThread(
        name=thread.name,
        count=thread.count,
        main=thread.main,
        blamed=is_blamed,
        does=does,
        place=place.place if place is not None else "",
        frames=_without_ours(stack, thread.frames),
    )


def _without_ours(stack: Stack, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Leaves out the capture's own frames around those of the program, which say nothing. Its
    frames inside them would."""
    around = stack.frames.index(stack.owner) if stack.owner is not None else len(stack.frames)
    ours = {
        text
        for text, frame in zip(stack.texts[around:], stack.frames[around:], strict=True)
        if frame.is_of(OURS)
    }
    return tuple(text for text in texts if text not in ours)
