"""Finds what Keras 2 and Keras 3 keep in different places."""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from stall_analyzer.captures.look_records import ENDLESS_SIZE
from tb_stall_plugin.capture.process.current_frames import stack_of, with_current_stacks
from tb_stall_plugin.capture.training.endless_generators import endless_generator

CLOSE_BEFORE = 2  # our profiler is closed this many steps before Keras starts its own
FRAMES_TO_CALLBACK_LIST = 8
LATE_END_S = 0.02
USUAL_BATCH = 32  # fit()'s default batch size for arrays


@dataclass(frozen=True)
class FitSettings:
    """What fit() was given; None if it was not given, or has no effect."""

    class_weight: dict[str, float] | None = None
    batch_size: int | None = None
    shuffle: bool | None = None
    # If the data is endless and the number of steps was not given: the generator, or "".
    endless: str | None = None


def marks_its_steps(model: Any) -> bool:
    """Keras 2 puts each batch into a trace event `train` or `test`; Keras 3 does not."""
    return hasattr(model, "_train_counter")


def steps_per_execution(model: Any) -> int:
    for name in ("steps_per_execution", "_steps_per_execution"):
        value = getattr(model, name, None)
        if value is not None:
            return int(value.numpy() if hasattr(value, "numpy") else value)  # a variable in Keras 2
    return 1


class Fit:
    """The fit that calls a callback, found on the stack of a hook: a callback knows neither the fit
    nor the list of callbacks, but is called through both."""

    def __init__(self, callback: Any) -> None:
        self.callback_list: Any = None
        self.was_left: Callable[[], bool] | None = None  # if it can be known
        self.settings = FitSettings()
        # Begins with the caller: our own frame in one of its variables would keep itself and fit
        # alive.
        for frame in stack_of(sys._getframe(1))[:FRAMES_TO_CALLBACK_LIST]:
            caller = frame.f_locals.get("self")
            callbacks = getattr(caller, "callbacks", None)
            if isinstance(callbacks, list) and any(each is callback for each in callbacks):
                self.callback_list = caller
                # Otherwise, it is a callback that has its own callbacks, and no fit calls it.
                if frame.f_back is not None and frame.f_back.f_code.co_name == "fit":
                    self.was_left = _has_returned(frame.f_back, caller)
                    self.settings = _settings(frame.f_back.f_locals)
                return


def _settings(given: Mapping[str, Any]) -> FitSettings:
    """Keras shuffles and batches only data that has a shape; other data is used as it comes."""
    is_array = any(hasattr(x, "shape") for x in _leaves(given.get("x")))
    weights, shuffle = given.get("class_weight"), given.get("shuffle")
    by_class = weights.items() if isinstance(weights, dict) else ()
    return FitSettings(
        class_weight={str(key): float(weight) for key, weight in by_class} or None,
        batch_size=(given.get("batch_size") or USUAL_BATCH) if is_array else None,
        shuffle=bool(shuffle) if is_array and shuffle is not None else None,
        endless=_endless_generator(given),
    )


def _endless_generator(given: Mapping[str, Any]) -> str | None:
    if given.get("steps_per_epoch") is not None:
        return None
    with suppress(Exception):  # where tf.data keeps it may change
        data: Any = given.get("x")
        is_endless = hasattr(data, "cardinality") and int(data.cardinality()) == ENDLESS_SIZE
        return endless_generator(data) or ("" if is_endless else None)
    return None


def _leaves(value: Any) -> Iterator[Any]:
    """Like tf.nest.flatten, but without TensorFlow: Keras may train without it."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _has_returned(frame: FrameType, callback_list: Any) -> Callable[[], bool]:
    """To be called by another thread: if an exception ends a fit, its callbacks are not told."""
    thread = threading.get_ident()
    # No reference to the frame, which would keep the data alive. Another fit may get the same
    # address; by then, the list of callbacks, which fit creates for itself, is gone as well.
    place, known = id(frame), weakref.ref(callback_list)

    def is_gone(stacks: Mapping[int, list[FrameType]]) -> bool:
        return known() is None or all(id(each) != place for each in stacks.get(thread, ()))

    return functools.partial(with_current_stacks, is_gone)


def profiled_by_keras(callback_list: Any) -> range:
    """The steps that are left to the profile_batch of Keras's own TensorBoard callback."""
    for callback in getattr(callback_list, "callbacks", ()):
        start, stop = (getattr(callback, f"_{end}_batch", None) for end in ("start", "stop"))
        if isinstance(start, int) and isinstance(stop, int) and start > 0:
            # Its batches count from 1. We keep the first step if possible: the graph is traced
            # there.
            return range(max(start - 1 - CLOSE_BEFORE, min(start - 1, 1)), stop + 1)
    return range(0)


class Batches:
    """Which batch is running. If no callback needs to see a batch end before the next begins, Keras
    3 reports the ends in other threads; and when the data has run out, it reports none at all."""

    def __init__(self, told_later: bool) -> None:
        self.told_later = told_later  # otherwise, Keras reports every end at once
        self.begin_anew()

    def begin_anew(self) -> None:
        """The batches of the next epoch count from 0 again."""
        # A batch whose end has not been reported. If the next one begins, it has ended.
        self.begun: int | None = None
        # The batch whose end was reported last, and its logs. Set by another thread if they are
        # reported later.
        self.told: tuple[int, Any] | None = None

    def ended(self, batch: int, logs: Any) -> bool:
        """Takes what Keras reports. Returns whether the batch has ended right now, and not
        earlier."""
        told = self.told
        if told is None or told[0] < batch:  # several threads may report in any order
            self.told = batch, logs
        if self.told_later:
            return False
        self.begun = None
        return True

    def last_ended(self) -> bool:
        """No more batches will begin. Returns whether the last one has ended without being
        reported."""
        begun, self.begun = self.begun, None
        if begun is None or not self.told_later:
            return False
        patience_s = time.monotonic() + LATE_END_S
        while not (has_ended := self._was_told_of(begun)) and time.monotonic() < patience_s:
            time.sleep(LATE_END_S / 20)
        return has_ended

    def _was_told_of(self, batch: int) -> bool:
        return self.told is not None and self.told[0] >= batch
