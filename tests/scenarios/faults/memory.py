"""Programs that are short of memory, lose it or spend time moving it, and how to fix them."""

from __future__ import annotations

import contextlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.catalogue import LIMITED
from tests.scenarios.faults.base import Fault, fit, forms, profiled
from tests.scenarios.memory_stalls import OtherHolder
from tests.scenarios.workloads import arrays, batches, dense_model, from_logits, training_step

COUNTED = {**LIMITED, "TF_CPU_BFC_MEM_LIMIT_IN_MB": "2000"}
FLOATS_PER_MB = 250_000
WORDS, WIDTH = 60_000, 64


class Temporary(keras.layers.Layer):
    """Needs some megabytes for a moment in every step."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self._floats = megabytes * FLOATS_PER_MB

    def call(self, x: Any) -> Any:
        value = tf.stop_gradient(x[0, 0])
        return x + 0.0 * tf.reduce_max(tf.fill([self._floats], value))


@forms
def train_beside_a_holder(logdir: str, megabytes: int) -> None:
    other = OtherHolder(megabytes * FLOATS_PER_MB)

    def before(batch: int, logs: Any = None) -> None:
        if batch in (3, 7, 11):
            other.hold(seconds=0.7)

    holder = keras.callbacks.LambdaCallback(on_train_batch_begin=before)
    model = dense_model(extra=[Temporary(300)])
    fit(logdir, model, batches(24), holder)


@forms
def custom_loop(logdir: str, megabytes: int) -> None:
    """One step of the loop needs more than there is; the program continues without it."""
    model = dense_model()
    train_step = training_step(model)
    temporary = Temporary(megabytes)
    temporary_held = tf.fill([280 * FLOATS_PER_MB], 1.0)

    @tf.function
    def step(x: Any, y: Any, hungry: Any) -> Any:
        loss = train_step(x, y)
        if hungry:
            loss += tf.reduce_sum(temporary(x)) * 0.0
        return loss

    x, y = (tf.constant(part) for part in arrays(64))
    with profiled(logdir):
        for number in range(40):
            with contextlib.suppress(tf.errors.ResourceExhaustedError):
                step(x, y, tf.constant(number == 30))
    assert temporary_held is not None


@forms
def uses(logdir: str, megabytes: int) -> None:
    fit(logdir, dense_model(extra=[Temporary(megabytes)]), batches(16))


class KeepWeights(keras.callbacks.Callback):
    """Keeps a layer's weights, or a number that tells of them, after every batch."""

    def __init__(self, as_numbers: bool) -> None:
        super().__init__()
        self._as_numbers = as_numbers
        self.kept: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        weights = tf.identity(self.model.layers[1].kernel)  # 512 x 512 floats: 1 MB
        self.kept.append(float(weights[0, 0]) if self._as_numbers else weights)


@forms
def keep_weights(logdir: str, as_numbers: bool) -> None:
    model = dense_model(layers=3, units=512)
    fit(logdir, model, batches(60, batch=512), KeepWeights(as_numbers))


@forms
def train_embedding(logdir: str, optimizer: str) -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Input((16,), dtype="int32"),
            keras.layers.Embedding(WORDS, WIDTH),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(10),
        ]
    )
    model.compile(optimizer, from_logits())
    random = np.random.default_rng(seed=1)
    words = random.integers(0, WORDS, size=(64, 16)).astype("int32")
    labels = random.integers(0, 10, size=64).astype("int32")
    one = tf.data.Dataset.from_tensors((words, labels))
    fit(logdir, model, one.cache().repeat(120).prefetch(2))


FAULTS = (
    Fault(
        "memory_held_elsewhere", "ST201", "memory",
        train_beside_a_holder(megabytes=300), train_beside_a_holder(megabytes=30),
        "the step waits until another thread gives 300 MB back", env=LIMITED,
    ),
    Fault(
        "memory_exhausted", "ST202", "memory",
        custom_loop(megabytes=300), custom_loop(megabytes=100),
        "a step asks for more than there is, for ten seconds, and fails", env=LIMITED,
    ),
    Fault(
        "memory_nearly_full", "ST203", "compute",  # it costs no time yet
        uses(megabytes=515), uses(megabytes=240),
        "the step needs nearly all of the memory", env=LIMITED,
    ),
    Fault(
        "memory_leak", "ST204", "compute",  # it costs no time yet
        keep_weights(as_numbers=False), keep_weights(as_numbers=True),
        "a callback keeps a tensor of every batch", env=COUNTED,
    ),
    Fault(
        "optimizer_over_wide_embedding", "ST206", "compute",
        train_embedding("adam"), train_embedding("sgd"),
        "Adam touches every row of an embedding, the batch uses a few",
    ),
)  # fmt: skip
