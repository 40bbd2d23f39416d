"""Programs that run op by op.

In an eager call, compute is what the kernels take; Python and dispatch are host. A clock around an
op sees kernel and dispatch together, so a control tells them apart: a model with the same ops on
tensors of next to no size, in the same process under the same profiler. What an op takes beyond
its median there is its kernel.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python import pywrap_tfe

from tests.scenarios.instruments import Instruments
from tests.scenarios.truth import NS_PER_S, Interval
from tests.scenarios.workloads import arrays, batches, dense_model, signature


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


def e_heavy_kernels(it: Instruments) -> None:
    clock = OpClock()
    model = dense_model(layers=3, units=1536, run_eagerly=True)
    it.fit(model, batches(16, batch=1024))
    _split_by_control(it, clock, steps=16)


def e_python_bound(it: Instruments) -> None:
    """Kernels so small that Python and dispatch are nearly everything."""
    clock = OpClock()
    model = dense_model(layers=3, units=64, run_eagerly=True)
    it.fit(model, batches(80, batch=64))
    _split_by_control(it, clock, steps=80)


def e_input(it: Instruments) -> None:
    clock = OpClock()

    def read() -> Iterator[tuple[Any, Any]]:
        x, y = arrays(256)
        for _ in range(40):
            time.sleep(0.09)
            yield x, y

    data = tf.data.Dataset.from_generator(read, output_signature=signature())
    model = dense_model(layers=3, units=256, run_eagerly=True)
    it.fit(model, data, steps_per_epoch=40)
    _split_by_control(it, clock, steps=40)


def _split_by_control(it: Instruments, clock: OpClock, steps: int) -> None:
    tiny = dense_model(layers=3, units=1, features=1, run_eagerly=True)
    it.watch(tiny)
    board = keras.callbacks.TensorBoard(
        str(it.logdir.parent / "control"), update_freq="batch", profile_batch=0
    )
    with it.profile(it.logdir.parent / "control"):
        tiny.fit(batches(steps, batch=1, features=1), verbose=0, callbacks=[board])
    ops = [_ops_inside(clock, call.interval) for call in it.clocks.calls]
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for name, duration in (op for call in ops[steps:] for op in call):
        by_name[name].append(duration)
    dispatch = {name: median(durations) for name, durations in by_name.items()}
    kernels = [
        sum(max(0.0, duration - dispatch.get(name, 0.0)) for name, duration in call)
        for call in ops[:steps]
    ]
    # The first call also makes the kernels, which is not computing.
    kernels[0] = median(kernels)
    it.knowledge.moves.append(("host", "compute", sum(kernels) / NS_PER_S))
    it.how["compute"] = "timers around each op, less what the op takes on tiny tensors"


def _ops_inside(clock: OpClock, call: Interval) -> list[tuple[str, int]]:
    return [
        (name, duration)
        for begin, name, duration in clock.ops
        if call.begin_ns <= begin < call.end_ns
        and name != "IteratorGetNext"  # that one is the wait
    ]
