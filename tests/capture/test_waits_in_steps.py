"""Clocks inside compiled steps: around batches, and around what workers exchange."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tb_stall_plugin.capture.training.collective_wait import CollectiveWait
from tb_stall_plugin.capture.training.input_wait import InputWait
from tests.capture.small_trainings import tf

SLEEP_S = 0.05
VALUE = np.arange(6, dtype=np.float32)


def slow(value: Any) -> Any:
    """An op that takes its time."""

    def asleep(array: Any) -> Any:
        time.sleep(SLEEP_S)
        return array

    return tf.ensure_shape(tf.numpy_function(asleep, [value], tf.float32), VALUE.shape)


def test_an_exchange_is_timed_from_when_everything_is_ready_to_its_end() -> None:
    waits = CollectiveWait()

    @tf.function(autograph=False)
    def step(value: Any) -> Any:
        gradients = [slow(value), value + 1]
        first, second = waits.around(gradients, lambda: [slow(g) for g in gradients])
        return slow(first) + second

    for _ in range(3):
        result = step(tf.constant(VALUE))
    assert np.array_equal(result.numpy(), 2 * VALUE + 1)
    assert step.experimental_get_tracing_count() == 1
    assert waits.take() >= 3 * SLEEP_S
    assert waits.take() == 0.0


def test_what_xla_compiles_has_no_clocks() -> None:
    waits = CollectiveWait()

    @tf.function(autograph=False, jit_compile=True)
    def step(value: Any) -> Any:
        return waits.around(value, lambda: value * 2)

    assert np.array_equal(step(tf.constant(VALUE)).numpy(), 2 * VALUE)
    assert waits.take() == 0.0


def test_an_exchange_that_fails_fails_as_without_clocks() -> None:
    waits = CollectiveWait()

    @tf.function(autograph=False)
    def step(value: Any) -> Any:
        return waits.around(value, lambda: workers["no such worker"])

    workers: dict[str, Any] = {}
    with pytest.raises(KeyError, match="no such worker"):
        step(tf.constant(VALUE))


def test_batches_of_several_devices_are_waited_for_together() -> None:
    waits = InputWait()

    @tf.function(autograph=False)
    def step(value: Any) -> Any:
        def one_device() -> Any:
            return waits.around(lambda: slow(value))

        first, second = waits.around(lambda: [one_device(), one_device()])
        return first + second

    assert np.array_equal(step(tf.constant(VALUE)).numpy(), 2 * VALUE)
    waits.take()  # the next step is not traced
    began_s = time.perf_counter()
    step(tf.constant(VALUE)).numpy()
    took_s = time.perf_counter() - began_s
    # Python functions run one after another: what matters is that nothing is counted twice.
    assert SLEEP_S <= waits.take() <= took_s
