"""`sys._current_frames()`, asked in a way that harms no thread.

Without the garbage collector: up to Python 3.12.2 it holds a lock of the interpreter while it makes
its frames. If that makes Python collect garbage, a destructor may let other threads run,
TensorFlow's do; and the first one that needs the same lock, to begin a new thread say, waits for it
for ever with the interpreter in its hands: the whole process stands still.

And letting go of all frames afterwards: who asks is among those who are seen, so a frame that is
kept in a variable is a cycle, and keeps the variables of all functions that were seen alive until
garbage is collected. An iterator of TensorFlow that is taken down when Python itself ends waits for
ever: for threads that may run no more Python.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

Seen = TypeVar("Seen")

# One at a time: else the first to be done would switch the collector on under the others, and two
# that see each other would keep each other alive. In a child that was forked at the wrong moment
# nobody gives it back.
_lock = threading.RLock()
LONGEST_WAIT_S = 1.0


def with_current_frames(look: Callable[[dict[int, FrameType]], Seen]) -> Seen:
    """What `look` makes of the innermost frames by thread. It must not give any of them back."""
    is_mine = _lock.acquire(timeout=LONGEST_WAIT_S)
    frames: dict[int, FrameType] = {}
    try:
        frames = _without_collecting()
        return look(frames)
    finally:
        frames.clear()
        if is_mine:
            _lock.release()


def _without_collecting() -> dict[int, FrameType]:
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()
