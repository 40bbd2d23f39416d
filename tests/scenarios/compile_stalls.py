"""Programs that spend their first epoch making code."""

from __future__ import annotations

import time
from typing import Any

import keras
import tensorflow as tf

from tests.scenarios.instruments import Instruments
from tests.scenarios.workloads import arrays, batches, dense_model, from_logits, rows, training_step


class SlowToTrace(keras.layers.Layer):
    """Python that runs only while the step is traced."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def call(self, x: Any) -> Any:
        time.sleep(self._seconds)
        return x


def c_trace(it: Instruments) -> None:
    it.fit(dense_model(extra=[SlowToTrace(0.7)], optimizer="adam"), batches(60))


def c_big_graph(it: Instruments) -> None:
    it.fit(dense_model(layers=70, units=32), batches(15), tensorboard="epoch")


def c_jit(it: Instruments) -> None:
    it.knowledge.xla_calls = {0}
    it.how["compile"] = "first call less its wait and less the usual call"
    it.fit(dense_model(layers=8, units=64, jit_compile=True), batches(60))


def c_jit_remainder(it: Instruments) -> None:
    """The last, smaller batch has its own shape and is compiled again."""
    it.knowledge.xla_calls = {0, 40}
    it.how["compile"] = "first and last call less their wait and less the usual call"
    it.fit(dense_model(layers=6, units=64, jit_compile=True), rows(40 * 64 + 10).batch(64))


def c_variable_init(it: Instruments) -> None:
    """A wide model that nobody built before fit()."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(3000, activation="relu") for _ in range(3)])
    model.add(keras.layers.Dense(10))
    model.compile("adam", from_logits())
    it.fit(model, batches(3, batch=4), tensorboard="epoch")


def c_retrace_shapes(it: Instruments) -> None:
    """Ten shapes, so ten graphs."""
    step = it.timed(tf.function(it.stamped_step(training_step(dense_model(layers=6, units=128)))))
    x, y = (tf.constant(part) for part in arrays(256))
    with it.profile(), it.epoch():
        for number in range(30):
            size = 64 + 2 * (number // 3)
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(x[:size], y[:size])


def c_retrace_python(it: Instruments) -> None:
    """A Python number as argument makes a new graph for each value."""
    model = dense_model(layers=6, units=128)
    train_step = training_step(model)

    def scaled_step(x: Any, y: Any, scale: float) -> Any:
        return train_step(x * scale, y)

    step = it.timed(tf.function(it.stamped_step(scaled_step)))
    x, y = (tf.constant(part) for part in arrays(64))
    with it.profile(), it.epoch():
        for number in range(30):
            step(x, y, 1.0 + number // 3)
