"""Programs that run op by op.

In an eager call, compute is what the kernels take; Python and dispatch are host. The two cannot be
told apart by a clock around the call, so a control tells them apart: a model with the same ops on
tensors of next to no size, in the same process under the same profiler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import keras
import tensorflow as tf

from tests.scenarios.instruments import Instruments
from tests.scenarios.truth import NS_PER_S
from tests.scenarios.workloads import arrays, batches, dense_model, signature


def e_heavy_kernels(it: Instruments) -> None:
    model = dense_model(layers=3, units=1536, run_eagerly=True)
    it.fit(model, batches(16, batch=1024))
    _split_by_control(it, steps=16)


def e_python_bound(it: Instruments) -> None:
    """Kernels so small that Python and dispatch are nearly everything."""
    model = dense_model(layers=3, units=64, run_eagerly=True)
    it.fit(model, batches(80, batch=64))
    _split_by_control(it, steps=80)


def e_input(it: Instruments) -> None:
    def read() -> Iterator[tuple[Any, Any]]:
        x, y = arrays(256)
        for _ in range(40):
            time.sleep(0.09)
            yield x, y

    data = tf.data.Dataset.from_generator(read, output_signature=signature())
    model = dense_model(layers=3, units=256, run_eagerly=True)
    it.fit(model, data, steps_per_epoch=40)
    _split_by_control(it, steps=40)


def _split_by_control(it: Instruments, steps: int) -> None:
    tiny = dense_model(layers=3, units=1, features=1, run_eagerly=True)
    it.watch(tiny)
    board = keras.callbacks.TensorBoard(
        str(it.logdir.parent / "control"), update_freq="batch", profile_batch=0
    )
    with it.profile(it.logdir.parent / "control"):
        tiny.fit(batches(steps, batch=1, features=1), verbose=0, callbacks=[board])
    it.read_stamps()
    busy = _call_seconds(it)
    real, control = busy[:steps], busy[steps:]
    # What the first call takes beyond the usual is Python and the making of kernels.
    kernels = median(real) + sum(real[1:]) - steps * median(control)
    it.knowledge.moves.append(("host", "compute", kernels))
    it.how["compute"] = (
        "calls without their wait, less the same calls of a model with the same ops on tiny tensors"
    )


def _call_seconds(it: Instruments) -> list[float]:
    seconds = []
    for call in it.clocks.calls:
        inside = [
            fetch.length_ns
            for fetch in it.clocks.fetches
            if call.interval.begin_ns <= fetch.begin_ns <= call.interval.end_ns
        ]
        seconds.append((call.interval.length_ns - sum(inside)) / NS_PER_S)
    return seconds
