"""Programs that run op by op.

In an eager call, compute is what the kernels take; Python and dispatch are host. A clock around an
op sees kernel and dispatch together, so a control tells them apart: a model with the same ops on
tensors of next to no size, trained in a callback between the measured steps. What an op takes
beyond its median in the control steps around it is its kernel. They take turns because the speed of
the machine drifts: a control before or after the epoch would be that of another machine.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

import keras
from tensorflow.python import pywrap_tfe

from tests.scenarios.instruments import Instruments
from tests.scenarios.truth import NS_PER_S, Interval
from tests.scenarios.workloads import batches, dense_model, sleepy_batches

NEIGHBORS = 2  # control steps on either side of a step that tell what its dispatch took


class OpClock:
    """Times every eager op of the training thread."""

    def __init__(self) -> None:
        self.ops: list[tuple[int, str, int]] = []  # begin, name of the op, nanoseconds
        self._thread = threading.get_ident()
        # Each entry point has the op's name in another place among its arguments.
        for entry, position in (("TFE_Py_FastPathExecute", 1), ("TFE_Py_Execute", 2)):
            setattr(pywrap_tfe, entry, self._timed(getattr(pywrap_tfe, entry), position))

    def _timed(self, execute: Callable[..., Any], position: int) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            begin = time.time_ns()
            try:
                return execute(*args)
            finally:
                if threading.get_ident() == self._thread:
                    self.ops.append((begin, args[position], time.time_ns() - begin))

        return timed


class Control(keras.callbacks.Callback):
    """Trains a model with the same ops on tiny tensors, after every few batches."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.turns: list[Interval] = []
        self._every = every
        self._tiny = dense_model(layers=3, units=1, features=1, run_eagerly=True)
        self._batch = next(iter(batches(1, batch=1, features=1)))
        self._tiny.train_on_batch(*self._batch)  # makes variables and kernels before the epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch % self._every == 0:
            begin = time.time_ns()
            self._tiny.train_on_batch(*self._batch)
            self.turns.append(Interval(begin, time.time_ns()))


def e_heavy_kernels(it: Instruments) -> None:
    model = dense_model(layers=3, units=1536, run_eagerly=True)
    _fit_with_control(it, model, batches(16, batch=1024), every=4)


def e_python_bound(it: Instruments) -> None:
    """Kernels so small that Python and dispatch are nearly everything."""
    model = dense_model(layers=3, units=64, run_eagerly=True)
    _fit_with_control(it, model, batches(80, batch=64), every=4)


def e_input(it: Instruments) -> None:
    data = sleepy_batches([0.09] * 40, batch=256)
    model = dense_model(layers=3, units=256, run_eagerly=True)
    _fit_with_control(it, model, data, every=2, steps_per_epoch=40)


def _fit_with_control(
    it: Instruments, model: keras.Model, data: Any, every: int, **options: Any
) -> None:
    clock = OpClock()
    control = Control(every)
    it.fit(model, data, callbacks=[control], **options)
    turns = [_ops_inside(clock, turn) for turn in control.turns]
    kernels = []
    for index, call in enumerate(it.clocks.calls):
        near = index // every
        dispatch = _median_by_name(turns[max(0, near - NEIGHBORS) : near + NEIGHBORS + 1])
        ops = _ops_inside(clock, call.interval)
        kernels.append(sum(max(0.0, duration - dispatch.get(name, 0.0)) for name, duration in ops))
    # The first call also makes the kernels, which is not computing.
    kernels[0] = median(kernels)
    it.knowledge.moves.append(("host", "compute", sum(kernels) / NS_PER_S))
    it.how["compute"] = "timers around each op, less what it takes on tiny tensors nearby"


def _median_by_name(turns: list[list[tuple[str, int]]]) -> dict[str, float]:
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for name, duration in (op for turn in turns for op in turn):
        by_name[name].append(duration)
    return {name: median(durations) for name, durations in by_name.items()}


def _ops_inside(clock: OpClock, call: Interval) -> list[tuple[str, int]]:
    return [
        (name, duration)
        for begin, name, duration in clock.ops
        if call.begin_ns <= begin < call.end_ns
        and name != "IteratorGetNext"  # that one is the wait
    ]
