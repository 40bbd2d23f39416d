"""Clocks around what TensorFlow and Keras do, in real trainings."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import func_graph

from stall_analyzer.captures.capture_format import Account, BookPhase
from tb_stall_plugin import StallCallback, watch
from tests.capture.capture_logs import records
from tests.capture.small_trainings import FEATURES, batches, finish, keras, small_model, tf

ORIGINALS = (
    polymorphic_function.Function.__call__,
    func_graph.func_graph_from_py_func,
    OwnedIterator._next_internal,
)


def spent_s(logdir: Path, *phases: str) -> Counter[str]:
    """Seconds by account, for all rows in these phases."""
    finish(logdir)
    spent: Counter[str] = Counter()
    for record in records(logdir, "books"):
        if not record.get("is_open") and (not phases or record["phase"] in phases):
            for account, column in record["spent_ns"].items():
                spent[account] += sum(column) / 1e9
            sums = [sum(row) for row in zip(*record["spent_ns"].values(), strict=True)]
            assert sums == record["lasted_ns"]
    return spent


def items(logdir: Path) -> dict[str, Any]:
    """Items by name."""
    return {item["name"]: item for r in records(logdir, "books") for item in r.get("items", ())}


def slow_batches(steps: int, seconds: float) -> Any:
    """A dataset whose batches take that long each."""

    def generate() -> Any:
        for _ in range(steps):
            time.sleep(seconds)
            yield np.ones((4, FEATURES), "float32"), np.ones((4, 1), "float32")

    shapes = (
        tf.TensorSpec((4, FEATURES), tf.float32),
        tf.TensorSpec((4, 1), tf.float32),
    )
    return tf.data.Dataset.from_generator(generate, output_signature=shapes)


def test_the_wait_for_batches_is_known_for_all_steps(tmp_path: Path) -> None:
    callback = StallCallback(tmp_path, profile=False)
    small_model().fit(slow_batches(40, 0.02), callbacks=[callback], verbose=0)
    waited = spent_s(tmp_path)[Account.WAIT]
    assert waited > 0.4, "40 batches of 20 ms each; some are made during the first step"


def test_with_several_steps_per_execution(tmp_path: Path) -> None:
    model, callback = small_model(steps_per_execution=4), StallCallback(tmp_path, profile=False)
    # Keras 2 must be told how many steps there are.
    model.fit(slow_batches(16, 0.2), steps_per_epoch=16, callbacks=[callback], verbose=0)
    assert spent_s(tmp_path)[Account.WAIT] > 1.0, "16 batches of 200 ms each"


def test_batches_that_come_while_a_step_computes_are_not_waited_for(tmp_path: Path) -> None:
    """Each step lasts until the next batch has been made, if its call needs one."""
    together, steps = 8, 16
    model = small_model(steps_per_execution=together)
    forward, made, begun, making_s = model.call, threading.Semaphore(0), count(1), []

    def batches_of_100_ms() -> Iterator[Any]:
        for step in range(steps):
            began = time.monotonic()
            time.sleep(0.1)
            making_s.append(time.monotonic() - began)
            if step % together:
                made.release()
            yield np.zeros((4, FEATURES), np.float32), np.zeros((4, 1), np.float32)

    def wait_for_the_next() -> None:
        if next(begun) % together:
            made.acquire()

    def as_long_as_a_batch(x: Any, **named: Any) -> Any:
        with tf.control_dependencies([tf.py_function(wait_for_the_next, [], [])]):
            return forward(tf.identity(x), **named)

    model.call = as_long_as_a_batch
    shapes = tf.TensorSpec((4, FEATURES), tf.float32), tf.TensorSpec((4, 1), tf.float32)
    data = tf.data.Dataset.from_generator(batches_of_100_ms, output_signature=shapes)
    callback = StallCallback(tmp_path, profile=False)
    model.fit(data, steps_per_epoch=steps, callbacks=[callback], verbose=0)
    assert spent_s(tmp_path)[Account.WAIT] < sum(making_s) / 2, "it waited for two of the sixteen"


def test_a_loop_waits_in_next(tmp_path: Path) -> None:
    @tf.function
    def step(x: Any) -> Any:
        return tf.reduce_sum(x)

    with watch(tmp_path, profile=False) as w:
        for x, _ in slow_batches(20, 0.02):
            w.step(loss=step(x))
    spent = spent_s(tmp_path)
    assert spent[Account.INPUT] > 0.3
    assert spent[Account.TRACE] > 0
    assert items(tmp_path)["step"]["where"].startswith(__file__)


class TakesLongToEnd:
    def __del__(self) -> None:
        time.sleep(0.1)


def test_the_end_of_an_iterator_is_timed_until_what_it_holds_is_gone(tmp_path: Path) -> None:
    iterator = iter(batches(1))
    with watch(tmp_path):
        held, iterator._iterator_resource = iterator._iterator_resource, TakesLongToEnd()
        del iterator
    del held
    assert spent_s(tmp_path)[Account.TEARDOWN] >= 0.1


def test_graphs_are_timed_where_they_are_built(tmp_path: Path) -> None:
    class Slow(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            if tf.inside_function():
                time.sleep(0.3)
            return x

    model = keras.Sequential([keras.layers.Input((FEATURES,)), Slow(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(4), callbacks=[StallCallback(tmp_path, profile=False)], verbose=0)
    assert spent_s(tmp_path, BookPhase.TRAIN)[Account.TRACE] > 0.3


def test_hooks_belong_to_the_callbacks_with_everything_they_call(tmp_path: Path) -> None:
    class Report(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.predict(np.ones((64, FEATURES)), verbose=0)
            time.sleep(0.2)

    said = []
    later = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: said.append(epoch))
    callbacks = [Report(), StallCallback(tmp_path, profile=False), later]
    small_model().fit(batches(4), callbacks=callbacks, epochs=2, verbose=0)
    spent = spent_s(tmp_path, BookPhase.EPOCH_END, BookPhase.TRAIN, BookPhase.BETWEEN)
    assert spent[Account.CALLBACK] > 0.4
    assert items(tmp_path)["Report.on_epoch_end"]["where"].startswith(__file__)
    assert said == [0, 1]


def test_saving_is_told_apart_from_the_callback_that_saves(tmp_path: Path) -> None:
    checkpoint = keras.callbacks.ModelCheckpoint(str(tmp_path / "model.keras"))
    callbacks = [checkpoint, StallCallback(tmp_path / "logs", profile=False)]
    small_model().fit(batches(4), callbacks=callbacks, verbose=0)
    assert spent_s(tmp_path / "logs")[Account.SAVE] > 0


def test_eager_training_calls_no_functions(tmp_path: Path) -> None:
    model = small_model(run_eagerly=True)
    model.fit(batches(4), callbacks=[StallCallback(tmp_path, profile=False)], verbose=0)
    finish(tmp_path)
    rows = [r for r in records(tmp_path, "books") if sum(r["steps"])]
    assert sum(sum(r["calls"]) for r in rows) == 0


def test_weights_are_the_same_to_the_last_bit_and_nothing_is_traced_again(tmp_path: Path) -> None:
    plain, captured = small_model(), small_model()
    plain.fit(batches(30), epochs=2, verbose=0)
    callback = StallCallback(tmp_path, profile=False)
    captured.fit(batches(30), epochs=2, callbacks=[callback], verbose=0)
    for one, other in zip(plain.get_weights(), captured.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    finish(tmp_path)
    assert Account.RETRACE not in {item["account"] for item in items(tmp_path).values()}


@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_put_back_when_the_fit_is_over(tmp_path: Path, fails: bool) -> None:
    class Fails(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if fails:
                raise RuntimeError("as planned")

    mine = Fails()
    callbacks = [mine, StallCallback(tmp_path, profile=False)]
    try:
        small_model().fit(batches(4), callbacks=callbacks, verbose=0)
    except RuntimeError:
        assert fails
    # A fit that an exception ended is found to be over when the next one begins.
    small_model().fit(batches(4), callbacks=[StallCallback(tmp_path, profile=False)], verbose=0)
    assert "on_train_batch_end" not in vars(mine)
    now = (
        polymorphic_function.Function.__call__,
        func_graph.func_graph_from_py_func,
        OwnedIterator._next_internal,
    )
    assert now == ORIGINALS


def test_callbacks_can_be_copied_while_they_are_timed(tmp_path: Path) -> None:
    copies: list[Any] = []

    class Copies(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            others = [c for c in (copy.copy(history),) if c is not self]
            copies.extend(pickle.loads(pickle.dumps(c.epoch)) for c in others)

    history = keras.callbacks.History()
    callbacks = [history, Copies(), StallCallback(tmp_path, profile=False)]
    small_model().fit(batches(4), callbacks=callbacks, verbose=0)
    assert copies == [[0]]
