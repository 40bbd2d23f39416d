"""In real trainings, the user's line that takes the time is named, with its seconds."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow.python.ops.script_ops import FuncRegistry

from stall_analyzer.model.code_lines import CodeLine
from tb_stall_plugin import StallCallback, watch
from tb_stall_plugin.capture.process.stack_sampler import Doing, StackSampler
from tb_stall_plugin.capture.training.python_calls import PythonCalls
from tests.capture.small_trainings import (
    FEATURES,
    IS_KERAS_3,
    batches,
    finish,
    keras,
    small_model,
    tf,
)
from tests.patience import happens
from tests.real_documents import analyzed


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A descriptor. Who reads a byte from it, and then another, has been looked at meanwhile; for
    as long as nobody looks, nobody waits."""
    reads, writes = os.pipe()
    begin, look, end = StackSampler.begin, StackSampler.look, StackSampler.end

    def nobody_waits() -> None:
        os.write(writes, bytes(10_000))

    def begins(sampler: StackSampler) -> None:
        os.read(reads, 20_000)
        begin(sampler)

    def looked(sampler: StackSampler, passed_ns: int) -> None:
        look(sampler, passed_ns)
        if not select.select([reads], [], [], 0)[0]:
            os.write(writes, bytes(1))

    def ends(sampler: StackSampler) -> None:
        end(sampler)
        nobody_waits()

    nobody_waits()
    monkeypatch.setattr(StackSampler, "begin", begins)
    monkeypatch.setattr(StackSampler, "look", looked)
    monkeypatch.setattr(StackSampler, "end", ends)
    yield reads
    os.close(reads)
    os.close(writes)


X = np.ones((4, FEATURES), np.float32)
SIGNATURE = tf.TensorSpec((4, FEATURES), tf.float32), tf.TensorSpec((4, 1), tf.float32)


def lines_of(folder: Path) -> list[CodeLine]:
    finish(folder)
    return [line for line in analyzed(folder).lines if line.path == __file__]


def costliest(folder: Path) -> CodeLine:
    return max(lines_of(folder), key=lambda line: line.ps)


def fit(folder: Path, data: Any, *callbacks: Any, model: Any = None, **options: Any) -> None:
    ours = StallCallback(folder, profile=False, **options)
    (model or small_model()).fit(data, epochs=1, verbose=0, callbacks=[*callbacks, ours])


def test_a_callback_is_named_by_its_line(tmp_path: Path, looks: int) -> None:
    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            for _ in range(3):
                os.read(looks, 1)  # the callback's

    fit(tmp_path, batches(4), Slow())
    line = costliest(tmp_path)
    assert line.source == "os.read(looks, 1)  # the callback's"
    assert (line.cause, line.background) == ("host.callback", False)
    causes_ps = analyzed(tmp_path).hosts[0].ledger.causes_ps
    assert causes_ps["host.callback"] / 2 < line.ps <= causes_ps["host.callback"]


def test_a_generator_is_named_by_the_line_that_training_waits_for(
    tmp_path: Path, looks: int
) -> None:
    def generator() -> Iterator[Any]:
        for n in range(18):
            os.read(looks, 1)  # the generator's
            if n % 3 == 2:
                yield X, X[:, :1]

    fit(tmp_path, tf.data.Dataset.from_generator(generator, output_signature=SIGNATURE))
    line = costliest(tmp_path)
    assert line.source == "os.read(looks, 1)  # the generator's"
    assert (line.bucket, line.background) == ("input", True)


def test_a_function_that_is_too_short_to_be_seen_is_named_by_its_beginning(tmp_path: Path) -> None:
    def decode(index: Any) -> Any:
        return X, sum(range(10_000)) * X[:, :1]

    def mapped(index: Any) -> Any:
        x, y = tf.py_function(decode, [index], [tf.float32, tf.float32])
        return tf.ensure_shape(x, (4, FEATURES)), tf.ensure_shape(y, (4, 1))

    fit(tmp_path, tf.data.Dataset.range(300).map(mapped))
    waited = [line for line in lines_of(tmp_path) if line.bucket == "input"]
    assert {line.function.rpartition(".")[2] for line in waited} == {"decode"}


def test_a_function_inside_of_one_that_autograph_converts_is_named_as_written(
    tmp_path: Path,
) -> None:
    def mapped(index: Any) -> Any:
        def decode(index: Any) -> Any:
            return X, sum(range(10_000)) * X[:, :1]

        x, y = tf.py_function(decode, [index], [tf.float32, tf.float32])
        return tf.ensure_shape(x, (4, FEATURES)), tf.ensure_shape(y, (4, 1))

    fit(tmp_path, tf.data.Dataset.range(300).map(mapped))
    waited = [line for line in lines_of(tmp_path) if line.bucket == "input"]
    assert "decode" in {line.function for line in waited}


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has no PyDataset")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_py_dataset_is_named_by_its_line(tmp_path: Path, looks: int, workers: int) -> None:
    class Slow(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            for _ in range(3):
                os.read(looks, 1)  # the dataset's
            return X, X[:, :1]

    fit(tmp_path, Slow(workers=workers))
    line = costliest(tmp_path)
    assert line.source == "os.read(looks, 1)  # the dataset's"
    assert (line.bucket, line.background) == ("input", True)


def test_a_layer_is_named_by_the_line_that_is_traced(tmp_path: Path, looks: int) -> None:
    class Slow(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            for _ in range(9):
                os.read(looks, 1)  # the layer's
            return x

    model = keras.Sequential([Slow(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    fit(tmp_path, batches(3), model=model)
    line = costliest(tmp_path)
    assert line.source == "os.read(looks, 1)  # the layer's"
    assert line.bucket in {"compile", "host"}, "Keras builds models before their step is traced"


def test_python_between_the_steps_of_a_loop_is_named_by_its_line(
    tmp_path: Path, looks: int
) -> None:
    @tf.function
    def step(x: Any) -> Any:
        return tf.reduce_sum(x)

    with watch(tmp_path, profile=False) as w:
        w.epoch()
        for x, _ in batches(6):
            loss = step(x)
            for _ in range(3):
                os.read(looks, 1)  # the loop's
            w.step(loss)
    causes = {line.source: line.cause for line in lines_of(tmp_path)}
    assert causes["os.read(looks, 1)  # the loop's"] == "host.python"


def test_the_text_of_lines_is_left_out_if_it_is_not_wanted(tmp_path: Path) -> None:
    class Slow(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            time.sleep(0.3)

    fit(tmp_path, batches(3), Slow(), source=False)
    line = costliest(tmp_path)
    assert line.function.endswith("Slow.on_epoch_end") and line.source == ""


def test_only_the_first_epoch_is_looked_at(tmp_path: Path) -> None:
    def is_looked_at() -> bool:
        return "stall-lines" in {thread.name for thread in threading.enumerate()}

    seen: list[bool] = []

    class Sees(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            # Its thread sleeps for a moment before it notices that it should stop.
            seen.append(is_looked_at() if epoch == 0 else not happens(lambda: not is_looked_at()))

    ours = StallCallback(tmp_path, profile=False)
    before = vars(FuncRegistry)["__call__"]
    small_model().fit(batches(3), epochs=3, verbose=0, callbacks=[Sees(), ours])
    assert seen == [True, False, False]
    assert vars(FuncRegistry)["__call__"] is before


def test_functions_that_run_at_the_same_time_share_the_time() -> None:
    now = [0]
    calls = PythonCalls(lambda: Doing(1, "step", "f"), lambda: now[0])
    first = now[0]
    now[0] = 10
    second = now[0]
    now[0] = 30
    calls.ended(("a", "a.py:1"), first)
    now[0] = 40
    calls.ended(("b", "b.py:1"), second)
    assert [(item.name, item.spent_ns) for item in calls.taken()] == [("a", 20), ("b", 20)]
    assert calls.taken() == ()
    assert calls.were_seen
