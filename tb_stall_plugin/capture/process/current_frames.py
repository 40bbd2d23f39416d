"""Gets the frames of all threads in a way that harms none of them.

First, the garbage collector is off meanwhile. Up to Python 3.11, creating an object may first
collect garbage, and a destructor may then let other threads run; TensorFlow's destructors do.

- `sys._current_frames()` holds a lock of the interpreter (up to 3.12.2). The next thread that needs
  that lock, for example to start a thread, waits for it forever while it holds the interpreter
  lock: the whole process stands still.
- `f_back` creates an object for the caller's frame (3.11). If the other thread, to which that frame
  belongs, has returned from it in the meantime, the object refers to memory that has been reused,
  and Python crashes. So only this module asks a frame of another thread for its `f_back` or its
  variables.

Second, all frames are released afterward. The calling thread is among those that are seen, so a
frame that is kept in a variable forms a cycle, which keeps the variables of all seen functions
alive until garbage is collected. If that happens only when Python itself ends, a TensorFlow
iterator that is torn down then waits forever: for threads that can no longer run Python.
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

# One thread at a time: otherwise, the first to finish would turn the collector on while others
# still look, and two that see each other would keep each other alive. The wait is limited because
# in a child that was forked at the wrong moment, nobody releases the lock.
_lock = threading.RLock()
LONGEST_WAIT_S = 1.0


def with_current_stacks(look: Callable[[dict[int, list[FrameType]]], Seen]) -> Seen:
    """What `look` returns for the frames by thread, innermost first. It must not return a frame."""
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
    """A frame and its callers. Only for the calling thread, whose callers cannot return."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def locals_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame of another thread. Up to Python 3.12, a frame keeps its last answer,
    and drops it while it makes the next: whoever asks twice must keep the first answer until then,
    or destructors run at just that wrong moment."""
    with _nothing_collected():
        return dict(frame.f_locals)


def variables_of(frame: FrameType, names: Collection[str]) -> dict[str, Any]:
    """Some variables of another thread's function. The frame is made to drop its copies of them,
    which may be large. Empty if a debugger is in that function, which may change them."""
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
