"""Programs whose step asks for memory that somebody else still holds.

They need TF_CPU_ALLOCATOR_USE_BFC and a limit (see the catalogue): with them the CPU's allocator
behaves as a GPU's does, waiting up to ten seconds for memory to come back.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import keras
import tensorflow as tf

from tests.scenarios.instruments import Instruments, StampLog
from tests.scenarios.truth import Coat, Interval
from tests.scenarios.workloads import arrays, batches, dense_model, training_step

BIG = 75_000_000  # floats: 300 MB, more than half of the limit


class BigTemporary(keras.layers.Layer):
    """Needs 300 MB for a moment, and notes when it asks for them."""

    def __init__(self, asked: StampLog) -> None:
        super().__init__()
        self._asked = asked

    def call(self, x: Any) -> Any:
        return x + 0.0 * big_temporary(self._asked, x)


def big_temporary(asked: StampLog, x: Any) -> Any:
    value = x[0, 0]
    request = asked.stamp(after=[value])
    with tf.control_dependencies([request]):
        return tf.reduce_max(tf.fill([BIG], tf.stop_gradient(value)))


class OtherHolder:
    """Holds 300 MB, or what it is told, in its own thread for a known time."""

    def __init__(self, floats: int = BIG) -> None:
        self._floats = floats
        self.released_ns: list[int] = []

    def hold(self, seconds: float) -> None:
        """Returns as soon as the memory is taken."""
        taken = threading.Event()

        def run() -> None:
            tensor = tf.fill([self._floats], 1.0)
            taken.set()
            time.sleep(seconds)
            del tensor
            self.released_ns.append(time.time_ns())

        threading.Thread(target=run).start()
        taken.wait()


def note_waits(it: Instruments, asked: StampLog, holder: OtherHolder) -> None:
    requests = asked.times_ns()
    for released in holder.released_ns:
        request = max(t for t in requests if t < released)
        it.knowledge.coats.append(Coat("memory", Interval(request, released)))
    it.how["memory"] = "from the request, stamped in the graph, to the other holder's release"


def fit_with_holder(it: Instruments, holds: dict[int, float], data: Any, **options: Any) -> None:
    asked, holder = StampLog(), OtherHolder()

    def before(batch: int, logs: Any = None) -> None:
        if batch in holds:
            holder.hold(holds[batch])

    callbacks = [keras.callbacks.LambdaCallback(on_train_batch_begin=before)]
    model = dense_model(extra=[BigTemporary(asked)])
    it.fit(model, data, [*callbacks, *options.pop("callbacks", ())], **options)
    note_waits(it, asked, holder)


def m_retry(it: Instruments) -> None:
    fit_with_holder(it, {5: 1.6}, batches(12))


def m_retry_often(it: Instruments) -> None:
    fit_with_holder(it, {3: 0.7, 7: 0.8, 11: 0.9}, batches(14))


def m_out_of_memory(it: Instruments) -> None:
    """One step of a custom loop cannot get memory for ten seconds; the program skips it."""
    asked, holder = StampLog(), OtherHolder()
    model = dense_model()
    train_step = training_step(model)

    def hungry_step(x: Any, y: Any) -> Any:
        return train_step(x, y) + 0.0 * big_temporary(asked, x)

    step = it.timed(tf.function(it.stamped_step(hungry_step)))
    x, y = (tf.constant(part) for part in arrays(64))
    failed_ns = 0
    with it.profile(), it.epoch():
        for number in range(12):
            if number == 6:
                holder.hold(12.0)
            try:
                step(x, y)
            except tf.errors.ResourceExhaustedError:
                failed_ns = time.time_ns()
                break
    assert failed_ns, "the allocator found the memory after all"
    it.clocks.calls = [call for call in it.clocks.calls if not call.raised]
    it.knowledge.coats.append(Coat("memory", Interval(asked.times_ns()[-1], failed_ns)))
    it.how["memory"] = "from the request, stamped in the graph, to the caught exception"
