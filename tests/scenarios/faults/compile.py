"""Programs that make more code than they need, and the same programs with the advice applied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tests.scenarios.faults import base
from tests.scenarios.faults.base import Fault, forms, profiled
from tests.scenarios.workloads import arrays, batches, dense_model, from_logits, rows, training_step


def fit(logdir: str, model: keras.Model, data: Any) -> None:
    base.fit(logdir, model, data, update_freq="epoch")


def loop(logdir: str, step: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
    """A custom loop: one call of the step for each set of arguments."""
    with profiled(logdir):
        for number, arguments in enumerate(calls):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(*arguments)


# ------------------------------------------------------------ retracing


@forms
def changing_shapes(logdir: str, reduce_retracing: bool) -> None:
    """Text batches of many lengths: each new length makes a new graph."""
    model = dense_model(layers=6, units=128)
    step = tf.function(training_step(model), reduce_retracing=reduce_retracing)
    x, y = (tf.constant(part) for part in arrays(256))
    sizes = [64 + 2 * (number // 3) for number in range(30)]
    loop(logdir, step, [(x[:size], y[:size]) for size in sizes])


@forms
def changing_numbers(logdir: str, as_tensor: bool) -> None:
    """A learning-rate factor that is a Python number: each value makes a new graph."""
    train_step = training_step(dense_model(layers=6, units=128))

    @tf.function
    def scaled_step(x: Any, y: Any, scale: Any) -> Any:
        return train_step(x * scale, y)

    x, y = (tf.constant(part) for part in arrays(64))
    scales = [1.0 - number / 100 for number in range(15)]
    scale = [tf.constant(value) if as_tensor else value for value in scales]
    loop(logdir, scaled_step, [(x, y, value) for value in scale])


@forms
def new_function_each_call(logdir: str, inside: bool) -> None:
    """tf.function is called inside the loop: every batch gets its own function, which is traced."""
    train_step = training_step(dense_model(layers=6, units=128))
    once = tf.function(train_step)
    x, y = (tf.constant(part) for part in arrays(64))

    def step(x: Any, y: Any) -> Any:
        return (tf.function(train_step) if inside else once)(x, y)

    loop(logdir, step, [(x, y)] * 12)


@forms
def smaller_last_batch(logdir: str, drop_remainder: bool) -> None:
    """The last batch has another shape, so a big step is traced twice."""
    model = dense_model(layers=25, units=64)
    step = tf.function(training_step(model))
    data = rows(20 * 64 + 10).batch(64, drop_remainder=drop_remainder)
    loop(logdir, step, list(data))


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


@forms
def recurrence(logdir: str, in_graph: bool) -> None:
    model = dense_model(features=1600, extra=[Recurrent(in_graph)])
    fit(logdir, model, batches(15, batch=16, features=1600))


@forms
def optimizer_built(logdir: str, before: bool) -> None:
    """Adam makes its variables inside the first call, and Keras traces the step again."""
    model = dense_model(layers=10, units=64, optimizer="adam")
    if before:
        model.optimizer.build(model.trainable_variables)
    fit(logdir, model, batches(20))


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


@forms
def slow_call(logdir: str, in_call: bool) -> None:
    fit(logdir, dense_model(extra=[ReadsWhileTraced(in_call)]), batches(60))


@forms
def wide_variables(logdir: str, before: bool) -> None:
    """A wide model that nobody built: its variables are made inside the first call."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Embedding(400_000, 64),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(10),
        ]
    )
    model.compile("sgd", from_logits())
    words = tf.abs(tf.cast(arrays(8)[0] * 1000, tf.int32))
    labels = tf.constant(arrays(8)[1])
    data = tf.data.Dataset.from_tensors((words, labels)).repeat(10)
    if before:
        model.build((None, 64))
    fit(logdir, model, data)


# ------------------------------------------------------------ XLA


@forms
def compiled(logdir: str, jit_compile: bool) -> None:
    """XLA for an epoch so short that compiling takes longer than all steps."""
    fit(logdir, dense_model(layers=8, units=64, jit_compile=jit_compile), batches(60))


@forms
def compiled_batches(logdir: str, sizes: Sequence[int]) -> None:
    """XLA compiles for exact shapes: each new batch size is compiled again."""
    x, y = arrays(64)

    def read() -> Iterator[tuple[Any, Any]]:
        for size in sizes:
            yield x[:size], y[:size]

    spec = (tf.TensorSpec((None, 64), tf.float32), tf.TensorSpec((None,), tf.int32))
    data = tf.data.Dataset.from_generator(read, output_signature=spec)
    fit(logdir, dense_model(layers=4, units=64, jit_compile=True), data)


# ------------------------------------------------------------ eager and dispatch


@forms
def run_eagerly(logdir: str, eagerly: bool) -> None:
    fit(logdir, dense_model(layers=4, units=64, run_eagerly=eagerly), batches(120))


@forms
def custom_loop(logdir: str, in_graph: bool) -> None:
    step = training_step(dense_model(layers=4, units=64))
    function = tf.function(step) if in_graph else step
    with profiled(logdir):
        for x, y in batches(150):
            function(x, y)


@forms
def many_short_steps(logdir: str, steps_per_execution: int) -> None:
    """Steps of a fraction of a millisecond: starting each one takes longer than running it."""
    model = dense_model(layers=1, units=8, steps_per_execution=steps_per_execution)
    fit(logdir, model, batches(1600, batch=16))


def healthy(logdir: str) -> None:
    """Heavy steps in a graph, built once."""
    fit(logdir, dense_model(layers=3, units=1024), batches(60, batch=512))


FAULTS = (
    Fault(
        "compile_retraced_for_shapes", "ST104", "compile",
        changing_shapes(reduce_retracing=False), changing_shapes(reduce_retracing=True),
        "a custom loop over ten batch sizes",
    ),
    Fault(
        "compile_retraced_for_numbers", "ST104", "compile",
        changing_numbers(as_tensor=False), changing_numbers(as_tensor=True),
        "a Python number as argument of the step",
    ),
    Fault(
        "compile_new_function_each_call", "ST104", "compile",
        new_function_each_call(inside=True), new_function_each_call(inside=False),
        "tf.function called inside the loop",
    ),
    Fault(
        "compile_retraced_for_last_batch", "ST104", "compile",
        smaller_last_batch(drop_remainder=False), smaller_last_batch(drop_remainder=True),
        "the smaller last batch needs a graph of its own",
    ),
    Fault(
        "compile_unrolled_loop", "ST102", "compile",
        recurrence(in_graph=False), recurrence(in_graph=True),
        "200 time steps unrolled by a Python loop",
    ),
    Fault(
        "compile_traced_twice", "ST101", "compile",
        optimizer_built(before=False), optimizer_built(before=True),
        "Adam makes its variables in the first call",
    ),
    Fault(
        "compile_slow_python_in_call", "ST101", "compile",
        slow_call(in_call=True), slow_call(in_call=False),
        "a layer reads a file in call()",
    ),
    Fault(
        "compile_variables_in_fit", "ST107", "compile",
        wide_variables(before=False), wide_variables(before=True),
        "a big embedding that is made inside the first call",
    ),
    Fault(
        "compile_xla_for_a_short_run", "ST105", "compile",
        compiled(jit_compile=True), compiled(jit_compile=False),
        "XLA for 60 small steps",
    ),
    Fault(
        "compile_xla_for_every_size", "ST106", "compile",
        compiled_batches([64] * 20 + [60, 56, 52]), compiled_batches([64] * 23),
        "batch sizes that change under XLA",
    ),
    Fault(
        "compile_xla_for_last_batch", "ST106", "compile",
        compiled_batches([64] * 40 + [10]), compiled_batches([64] * 40),
        "XLA again for the smaller last batch",
    ),
    Fault(
        "host_run_eagerly", "ST108", "host", run_eagerly(True), run_eagerly(False),
        "run_eagerly=True left on",
    ),
    Fault(
        "host_loop_without_function", "ST108", "host",
        custom_loop(in_graph=False), custom_loop(in_graph=True),
        "a custom loop without tf.function",
    ),
    Fault(
        "host_many_short_steps", "ST109", "host", many_short_steps(1), many_short_steps(32),
        "steps shorter than what it takes to start them",
    ),
    Fault(
        "compile_healthy", None, "compute", healthy, None,
        "one graph, heavy steps", healthy=True,
    ),
)  # fmt: skip
