"""Programs that make more code than they need, and the same programs with the advice applied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tests.scenarios.faults.base import Fault, Program, profiled
from tests.scenarios.workloads import arrays, batches, dense_model, rows, training_step


def fit(model: keras.Model, data: Any, logdir: str, update_freq: str | int = "epoch") -> None:
    with profiled(logdir, update_freq) as board:
        model.fit(data, verbose=0, callbacks=[board])


def loop(logdir: str, step: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
    """A custom loop: one call of the step for each set of arguments."""
    with profiled(logdir):
        for number, arguments in enumerate(calls):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(*arguments)


# ------------------------------------------------------------ retracing


def changing_shapes(reduce_retracing: bool) -> Program:
    """Text batches of many lengths: each new length makes a new graph."""

    def program(logdir: str) -> None:
        model = dense_model(layers=6, units=128)
        step = tf.function(training_step(model), reduce_retracing=reduce_retracing)
        x, y = (tf.constant(part) for part in arrays(256))
        sizes = [64 + 2 * (number // 3) for number in range(30)]
        loop(logdir, step, [(x[:size], y[:size]) for size in sizes])

    return program


def changing_numbers(as_tensor: bool) -> Program:
    """A learning-rate factor that is a Python number: each value makes a new graph."""

    def program(logdir: str) -> None:
        train_step = training_step(dense_model(layers=6, units=128))

        @tf.function
        def scaled_step(x: Any, y: Any, scale: Any) -> Any:
            return train_step(x * scale, y)

        x, y = (tf.constant(part) for part in arrays(64))
        scales = [1.0 - number / 100 for number in range(15)]
        scale = [tf.constant(value) if as_tensor else value for value in scales]
        loop(logdir, scaled_step, [(x, y, value) for value in scale])

    return program


def new_function_each_call(inside: bool) -> Program:
    """tf.function called inside the loop: every batch gets a function of its own, and traces it."""

    def program(logdir: str) -> None:
        train_step = training_step(dense_model(layers=6, units=128))
        once = tf.function(train_step)
        x, y = (tf.constant(part) for part in arrays(64))

        def step(x: Any, y: Any) -> Any:
            return (tf.function(train_step) if inside else once)(x, y)

        loop(logdir, step, [(x, y)] * 12)

    return program


def smaller_last_batch(drop_remainder: bool) -> Program:
    """The last batch has another shape, so a big step is traced twice."""

    def program(logdir: str) -> None:
        model = dense_model(layers=25, units=64)
        step = tf.function(training_step(model))
        data = rows(20 * 64 + 10).batch(64, drop_remainder=drop_remainder)
        loop(logdir, step, list(data))

    return program


# ------------------------------------------------------------ tracing and graphs


class Recurrent(keras.layers.Layer):
    """A recurrence over 200 time steps, as a Python loop or as a loop in the graph."""

    def __init__(self, in_graph: bool) -> None:
        super().__init__()
        self._cell = keras.layers.SimpleRNNCell(32)
        self._rnn = keras.layers.RNN(self._cell) if in_graph else None

    def call(self, x: Any) -> Any:
        series = tf.reshape(x, (-1, 200, 8))
        if self._rnn is not None:
            return self._rnn(series)
        state = tf.zeros((tf.shape(x)[0], 32))
        for moment in range(200):
            _, (state,) = self._cell(series[:, moment], [state])
        return state


def recurrence(in_graph: bool) -> Program:
    def program(logdir: str) -> None:
        model = dense_model(features=1600, extra=[Recurrent(in_graph)])
        fit(model, batches(15, batch=16, features=1600), logdir)

    return program


def optimizer_built(before: bool) -> Program:
    """Adam makes its variables inside the first call, and Keras traces the step again."""

    def program(logdir: str) -> None:
        model = dense_model(layers=10, units=64, optimizer="adam")
        if before:
            model.optimizer.build(model.trainable_variables)
        fit(model, batches(20), logdir)

    return program


class ReadsWhileTraced(keras.layers.Layer):
    """Slow Python in call(): it runs whenever the step is traced, and never in a step."""

    def __init__(self, in_call: bool) -> None:
        super().__init__()
        self._in_call = in_call
        if not in_call:
            self._scale = self._read()

    def _read(self) -> float:
        time.sleep(1.2)  # stands for reading a table from a file
        return 0.5

    def call(self, x: Any) -> Any:
        return x * (self._read() if self._in_call else self._scale)


def slow_call(in_call: bool) -> Program:
    def program(logdir: str) -> None:
        fit(dense_model(extra=[ReadsWhileTraced(in_call)]), batches(60), logdir)

    return program


def wide_variables(before: bool) -> Program:
    """A wide model that nobody built: its variables are made inside the first call."""

    def program(logdir: str) -> None:
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [
                keras.layers.Embedding(400_000, 64),
                keras.layers.GlobalAveragePooling1D(),
                keras.layers.Dense(10),
            ]
        )
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        words = tf.abs(tf.cast(arrays(8)[0] * 1000, tf.int32))
        labels = tf.constant(arrays(8)[1])
        data = tf.data.Dataset.from_tensors((words, labels)).repeat(10)
        if before:
            model.build((None, 64))
        fit(model, data, logdir)

    return program


# ------------------------------------------------------------ XLA


def compiled(jit_compile: bool) -> Program:
    """XLA for an epoch so short that compiling takes longer than all steps."""

    def program(logdir: str) -> None:
        fit(dense_model(layers=8, units=64, jit_compile=jit_compile), batches(60), logdir)

    return program


def compiled_batches(sizes: Sequence[int]) -> Program:
    """XLA compiles for exact shapes: each new batch size is compiled again."""

    def program(logdir: str) -> None:
        x, y = arrays(64)

        def read() -> Iterator[tuple[Any, Any]]:
            for size in sizes:
                yield x[:size], y[:size]

        spec = (tf.TensorSpec((None, 64), tf.float32), tf.TensorSpec((None,), tf.int32))
        data = tf.data.Dataset.from_generator(read, output_signature=spec)
        fit(dense_model(layers=4, units=64, jit_compile=True), data, logdir)

    return program


# ------------------------------------------------------------ eager and dispatch


def run_eagerly(eagerly: bool) -> Program:
    def program(logdir: str) -> None:
        fit(dense_model(layers=4, units=64, run_eagerly=eagerly), batches(120), logdir)

    return program


def custom_loop(in_graph: bool) -> Program:
    def program(logdir: str) -> None:
        step = training_step(dense_model(layers=4, units=64))
        function = tf.function(step) if in_graph else step
        with profiled(logdir):
            for x, y in batches(150):
                function(x, y)

    return program


def many_short_steps(steps_per_execution: int) -> Program:
    """Steps of a fraction of a millisecond: starting each one takes longer than running it."""

    def program(logdir: str) -> None:
        model = dense_model(layers=1, units=8, steps_per_execution=steps_per_execution)
        fit(model, batches(1600, batch=16), logdir)

    return program


def healthy(logdir: str) -> None:
    """Heavy steps in a graph, built once."""
    fit(dense_model(layers=3, units=1024), batches(60, batch=512), logdir)


FAULTS = (
    Fault(
        name="compile_retraced_for_shapes",
        finding="ST104",
        bucket="compile",
        faulty=changing_shapes(reduce_retracing=False),
        fixed=changing_shapes(reduce_retracing=True),
        description="a custom loop over ten batch sizes",
    ),
    Fault(
        name="compile_retraced_for_numbers",
        finding="ST104",
        bucket="compile",
        faulty=changing_numbers(as_tensor=False),
        fixed=changing_numbers(as_tensor=True),
        description="a Python number as argument of the step",
    ),
    Fault(
        name="compile_new_function_each_call",
        finding="ST104",
        bucket="compile",
        faulty=new_function_each_call(inside=True),
        fixed=new_function_each_call(inside=False),
        description="tf.function called inside the loop",
    ),
    Fault(
        name="compile_retraced_for_last_batch",
        finding="ST104",
        bucket="compile",
        faulty=smaller_last_batch(drop_remainder=False),
        fixed=smaller_last_batch(drop_remainder=True),
        description="the smaller last batch needs a graph of its own",
    ),
    Fault(
        name="compile_unrolled_loop",
        finding="ST102",
        bucket="compile",
        faulty=recurrence(in_graph=False),
        fixed=recurrence(in_graph=True),
        description="200 time steps unrolled by a Python loop",
    ),
    Fault(
        name="compile_traced_twice",
        finding="ST101",
        bucket="compile",
        faulty=optimizer_built(before=False),
        fixed=optimizer_built(before=True),
        description="Adam makes its variables in the first call",
    ),
    Fault(
        name="compile_slow_python_in_call",
        finding="ST101",
        bucket="compile",
        faulty=slow_call(in_call=True),
        fixed=slow_call(in_call=False),
        description="a layer reads a file in call()",
    ),
    Fault(
        name="compile_variables_in_fit",
        finding="ST107",
        bucket="compile",
        faulty=wide_variables(before=False),
        fixed=wide_variables(before=True),
        description="a big embedding that is made inside the first call",
    ),
    Fault(
        name="compile_xla_for_a_short_run",
        finding="ST105",
        bucket="compile",
        faulty=compiled(jit_compile=True),
        fixed=compiled(jit_compile=False),
        description="XLA for 60 small steps",
    ),
    Fault(
        name="compile_xla_for_every_size",
        finding="ST106",
        bucket="compile",
        faulty=compiled_batches([64] * 20 + [60, 56, 52]),
        fixed=compiled_batches([64] * 23),
        description="batch sizes that change under XLA",
    ),
    Fault(
        name="compile_xla_for_last_batch",
        finding="ST106",
        bucket="compile",
        faulty=compiled_batches([64] * 40 + [10]),
        fixed=compiled_batches([64] * 40),
        description="XLA again for the smaller last batch",
    ),
    Fault(
        name="host_run_eagerly",
        finding="ST108",
        bucket="host",
        faulty=run_eagerly(True),
        fixed=run_eagerly(False),
        description="run_eagerly=True left on",
    ),
    Fault(
        name="host_loop_without_function",
        finding="ST108",
        bucket="host",
        faulty=custom_loop(in_graph=False),
        fixed=custom_loop(in_graph=True),
        description="a custom loop without tf.function",
    ),
    Fault(
        name="host_many_short_steps",
        finding="ST109",
        bucket="host",
        faulty=many_short_steps(1),
        fixed=many_short_steps(32),
        description="steps shorter than what it takes to start them",
    ),
    Fault(
        name="compile_healthy",
        finding=None,
        bucket="compute",
        faulty=healthy,
        fixed=None,
        description="one graph, heavy steps",
        healthy=True,
    ),
)
