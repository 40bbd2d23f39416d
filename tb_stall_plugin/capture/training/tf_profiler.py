"""TensorFlow's profiler. A process has only one, and a script that starts it gets it: we stop
ours.

Otherwise, starting it while ours runs would raise an exception in the training.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

WAIT_FOR_STOP_S = 30.0  # as long as saving a large profile may take

ProfilerTrace = tf.profiler.experimental.Trace

_traces = sys.modules[ProfilerTrace.__module__]


def a_profiler_runs() -> bool:
    """Whether one runs in this process, whoever started it. Asked before each step."""
    enabled = _traces.enabled
    return bool(enabled() if callable(enabled) else enabled)  # a plain bool up to TensorFlow 2.17


class Profiler:
    """`make_way` is called when the script starts the profiler while ours runs. It must stop
    ours."""

    def __init__(self, make_way: Callable[[], None]) -> None:
        self._make_way = make_way
        self._process = os.getpid()
        self._start: Callable[..., Any] = tf.profiler.experimental.start
        self._is_stopped = threading.Event()

    def start(self, folder: str) -> None:
        self._start = tf.profiler.experimental.start
        self._is_stopped.clear()
        for module in _who_offer_it():
            module.start = self._start_by_script  # type: ignore[attr-defined]
        try:
            self._start(folder)
        except Exception:
            self._restore()
            raise

    def stop(self, save: bool = True) -> None:
        try:
            tf.profiler.experimental.stop(save=save)
        finally:
            self._restore()

    def _restore(self) -> None:
        for module in _who_offer_it():
            if module.start == self._start_by_script:
                module.start = self._start  # type: ignore[attr-defined]
        self._is_stopped.set()

    def _start_by_script(self, *arguments: Any, **named: Any) -> Any:
        if os.getpid() == self._process:  # a forked child has no profiler
            self._make_way()
            self._is_stopped.wait(WAIT_FOR_STOP_S)
        return self._start(*arguments, **named)


def _who_offer_it() -> tuple[ModuleType, ModuleType]:
    """The public module, and the one that `Profile` and `tf.summary.trace_on` use."""
    public = tf.profiler.experimental
    return public, sys.modules[public.Profile.__module__]


def end_trace(trace: Any, step: int | None) -> None:
    """A number makes it a step."""
    if step is not None:
        trace.set_metadata(step_num=step, _r=1)
    trace.__exit__(None, None, None)
