"""What Keras 2 and Keras 3 keep in different places."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

CLOSE_BEFORE = 2  # steps before Keras starts its profiler, ours is closed
DEEPEST_FRAME = 6
LATE_END_S = 0.02


def marks_its_steps(model: Any) -> bool:
    """Keras 2 puts each batch into a trace event `train` or `test`, Keras 3 does not."""
    return hasattr(model, "_train_counter")


def steps_per_execution(model: Any) -> int:
    for name in ("steps_per_execution", "_steps_per_execution"):
        value = getattr(model, name, None)
        if value is not None:
            return int(value.numpy() if hasattr(value, "numpy") else value)  # Keras 2: a variable
    return 1


def callback_list_of(callback: Any) -> Any | None:
    """A callback does not know its list, but is called by it: to be asked inside of a hook."""
    frame = sys._getframe()
    for _ in range(DEEPEST_FRAME):
        if frame.f_back is None:
            return None
        frame = frame.f_back
        caller = frame.f_locals.get("self")
        callbacks = getattr(caller, "callbacks", None)
        if isinstance(callbacks, list) and any(each is callback for each in callbacks):
            return caller
    return None


def profiled_by_keras(callback_list: Any) -> range:
    """Steps to be kept free for the profile_batch of Keras' own TensorBoard callback."""
    for callback in getattr(callback_list, "callbacks", ()):
        start, stop = (getattr(callback, f"_{end}_batch", None) for end in ("start", "stop"))
        if isinstance(start, int) and isinstance(stop, int) and start > 0:
            # Its batches count from 1. The first step is ours if it can be: there it is traced.
            return range(max(start - 1 - CLOSE_BEFORE, min(start - 1, 1)), stop + 1)
    return range(0)


class Batches:
    """Which batch is under way. Where no callback needs to see batches end before the next begins,
    Keras 3 tells of their ends in other threads; and if the data has run out, of none at all."""

    def __init__(self, told_later: bool) -> None:
        self._thread = threading.get_ident()
        self._told_later = told_later
        self.begin_anew()

    def begin_anew(self) -> None:
        """The batches of another epoch count from 0 again."""
        self._begun: int | None = None
        self._ended = -1

    def begins(self, batch: int) -> bool:
        """True: the one before has ended, which nobody told."""
        before, self._begun = self._begun, batch
        return before is not None

    def ends(self, batch: int) -> bool:
        """True: this very moment. False: it is another thread that says so, at some later time."""
        if threading.get_ident() != self._thread:
            self._ended = max(self._ended, batch)
            return False
        self._begun = None
        return True

    def last_ended(self) -> bool:
        """No more will begin. True: the last one has ended, which nobody told."""
        begun, self._begun = self._begun, None
        if begun is None or not self._told_later:
            return False
        patience_s = time.monotonic() + LATE_END_S
        while self._ended < begun and time.monotonic() < patience_s:
            time.sleep(LATE_END_S / 20)
        return self._ended >= begun
