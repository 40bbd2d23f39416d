"""`sys._current_frames()`, without the garbage collector in it.

Up to Python 3.12.2 it holds a lock of the interpreter while it makes its frames. If that makes
Python collect garbage, a destructor may let other threads run, TensorFlow's do; and the first one
that needs the same lock, to begin a new thread say, waits for it for ever with the interpreter in
its hands: the whole process stands still.
"""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType

# One at a time, or the first to be done would switch the collector on under the others. In a child
# that was forked at the wrong moment nobody gives it back.
_lock = threading.RLock()
LONGEST_WAIT_S = 1.0


def current_frames() -> dict[int, FrameType]:
    is_mine = _lock.acquire(timeout=LONGEST_WAIT_S)
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()
        if is_mine:
            _lock.release()
