"""The frames of all threads, asked for in a way that harms none of them.

Without the garbage collector. Up to Python 3.11 whatever makes an object may collect garbage first,
and a destructor may then let other threads run; TensorFlow's do.

- `sys._current_frames()` holds a lock of the interpreter (up to 3.12.2). The first thread that
  needs it meanwhile, to begin a new thread say, waits for it forever with the interpreter in its
  hands: the whole process stands still.
- `f_back` makes an object for the frame of the caller (3.11). If another thread, whose frame it is,
  has returned from it meanwhile, that object refers to memory which is something else by now, and
  Python crashes. So nobody asks a frame of another thread for its `f_back`, or its variables, but
  here.

And letting go of all frames afterward: who asks is among those who are seen, so a frame that is
kept in a variable is a cycle, and keeps the variables of all functions that were seen alive until
garbage is collected. An iterator of TensorFlow that is torn down when Python itself ends
waits forever: for threads that may run no more Python.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

Seen = TypeVar("Seen")

# One at a time: else the first to be done would switch the collector on under the others, and two
# that see each other would keep each other alive. In a child that was forked at the wrong moment
# nobody gives it back.
_lock = threading.RLock()
LONGEST_WAIT_S = 1.0


def with_current_stacks(look: Callable[[dict[int, list[FrameType]]], Seen]) -> Seen:
    """What `look` makes of the frames by thread, innermost first. It must not give any of them
    back."""
    is_mine = _lock.acquire(timeout=LONGEST_WAIT_S)
    stacks: dict[int, list[FrameType]] = {}
    try:
        stacks = _taken()
        return look(stacks)
    finally:
        for stack in stacks.values():
            stack.clear()
        stacks.clear()
        if is_mine:
            _lock.release()


def _taken() -> dict[int, list[FrameType]]:
    with _nothing_collected():
        return {ident: stack_of(frame) for ident, frame in sys._current_frames().items()}


def stack_of(frame: FrameType | None) -> list[FrameType]:
    """From a frame of the calling thread on, whose callers stay where they are."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Of another thread. Up to Python 3.12 a frame keeps what it was asked for last, and lets go of
    it while it is asked again: whoever asks twice must keep the first answer until then, or
    destructors run at the same wrong moment."""
    with _nothing_collected():
        return dict(frame.f_locals)


def variables_of(frame: FrameType, names: Collection[str]) -> dict[str, Any]:
    """Some of another thread's function, which is to keep none of what it was asked for: they may
    be large. Nothing of a function that a debugger is in, who may change them."""
    if frame.f_trace is not None:
        return {}
    with _nothing_collected():
        known = frame.f_locals
        outside = frame.f_globals
        found = {name: known.get(name, outside.get(name)) for name in names}
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(known, dict):
            known.clear()
        return found


@contextmanager
def _nothing_collected() -> Iterator[None]:
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
