"""Programs that lose time in Python around the steps, and how to fix them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import Fault, fit, forms, profiled
from tests.scenarios.workloads import CLASSES, batches, dense_model


def every(batches_apart: int, action: Callable[[int], object]) -> keras.callbacks.Callback:
    """A callback that acts once in that many batches."""

    def after(batch: int, logs: Any = None) -> None:
        if (batch + 1) % batches_apart == 0:
            action(batch)

    return keras.callbacks.LambdaCallback(on_train_batch_end=after)


# ---------------------------------------------------------------- callbacks


def report_to_a_server(_: int) -> None:
    time.sleep(0.03)  # one round trip


def count_words(_: int) -> None:
    sum(len(str(number)) for number in range(200_000))


@forms
def calls_back(logdir: str, batches_apart: int, action: Callable[[int], object]) -> None:
    """Sixty steps of some fifteen milliseconds."""
    data = batches(60, batch=256)
    fit(logdir, dense_model(layers=3, units=768), data, every(batches_apart, action))


# ---------------------------------------------------------------- checkpoints


@forms
def keras_checkpoints(logdir: str, save_freq: str | int) -> None:
    path = Path(logdir).parent / "model.weights.h5"
    save = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=True, save_freq=save_freq)
    fit(logdir, dense_model(layers=3, units=1024), batches(50, batch=16), save)


@forms
def tensorflow_checkpoints(logdir: str, batches_apart: int) -> None:
    model = dense_model(layers=3, units=1024)
    checkpoint = tf.train.Checkpoint(model=model)
    prefix = str(Path(logdir).parent / "checkpoint")
    save = every(batches_apart, lambda _: checkpoint.write(prefix))
    fit(logdir, model, batches(50, batch=16), save)


# ---------------------------------------------------------------- summaries


@forms
def histograms(logdir: str, batches_apart: int) -> None:
    model = dense_model(layers=3, units=384)
    writer = tf.summary.create_file_writer(str(Path(logdir) / "train"))

    def write(batch: int) -> None:
        with writer.as_default(step=batch):
            for number, weight in enumerate(model.trainable_variables):
                tf.summary.histogram(f"weight/{number}", weight.numpy())

    fit(logdir, model, batches(24, batch=256), every(batches_apart, write))


@forms
def histograms_of_a_large_model(logdir: str, epochs_apart: int) -> None:
    model = dense_model(layers=3, units=1536)
    with profiled(logdir) as board:
        board.histogram_freq = epochs_apart  # 0: never
        model.fit(batches(20, batch=64), epochs=2, callbacks=[board], verbose=0)


# ---------------------------------------------------------------- threads


@forms
def threads_for_ops(logdir: str, count: int | None) -> None:
    if count is not None:
        tf.config.threading.set_intra_op_parallelism_threads(count)
    fit(logdir, dense_model(layers=3, units=1024), batches(60, batch=512))


# ---------------------------------------------------------------- validation


@forms
def validated(logdir: str, validation_steps: int) -> None:
    model = dense_model(layers=3, units=768)
    data = batches(30, batch=768)
    fit(logdir, model, data, validation_data=batches(validation_steps, batch=768))


# ---------------------------------------------------------------- the step itself


def focal_in_python(labels: Any, logits: Any) -> Any:
    """A weight per example, worked out with numpy."""

    def weights(labels: Any, logits: Any) -> Any:
        labels, logits = labels.numpy().astype(int), logits.numpy()
        result = np.empty(len(labels), dtype="float32")
        for row, label in enumerate(labels.reshape(-1)):
            shares = np.exp(logits[row] - logits[row].max())
            result[row] = (1 - shares[label] / shares.sum()) ** 2
        return result

    weight = tf.py_function(weights, [labels, tf.stop_gradient(logits)], tf.float32)
    return weighted(labels, logits, tf.reshape(weight, [-1]))


def focal_in_graph(labels: Any, logits: Any) -> Any:
    labels = tf.reshape(tf.cast(labels, tf.int32), [-1])
    shares = tf.nn.softmax(tf.stop_gradient(logits))
    own = tf.reduce_sum(shares * tf.one_hot(labels, CLASSES), axis=1)
    return weighted(labels, logits, (1 - own) ** 2)


def weighted(labels: Any, logits: Any, weight: Any) -> Any:
    labels = tf.reshape(tf.cast(labels, tf.int32), [-1])
    return weight * tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


@forms
def with_loss(logdir: str, loss: Callable[[Any, Any], Any]) -> None:
    fit(logdir, dense_model(loss=loss), batches(80, batch=2048))


# ---------------------------------------------------------------- what was captured


def profiles_three_batches(logdir: str) -> None:
    board = keras.callbacks.TensorBoard(logdir, update_freq="batch", profile_batch=(20, 22))
    model = dense_model(layers=3, units=768)
    model.fit(batches(60, batch=512), verbose=0, callbacks=[board])


def profiles_nothing(logdir: str) -> None:
    board = keras.callbacks.TensorBoard(logdir, update_freq="epoch", profile_batch=0)
    model = dense_model(layers=3, units=256)
    model.fit(batches(60, batch=64), epochs=3, verbose=0, callbacks=[board])


def profiles_the_epoch(logdir: str) -> None:
    fit(logdir, dense_model(layers=3, units=768), batches(60, batch=512))


FAULTS = (
    Fault(
        "callback_waits", "ST401", "host",
        calls_back(1, report_to_a_server), calls_back(60, report_to_a_server),
        "a callback talks to a server after each batch",
    ),
    Fault(
        "callback_computes", "ST401", "host",
        calls_back(1, count_words), calls_back(30, count_words),
        "a callback computes in Python after each batch",
    ),
    Fault(
        "keras_checkpoint_each_batch", "ST402", "host",
        keras_checkpoints(save_freq=1), keras_checkpoints(save_freq="epoch"),
        "ModelCheckpoint with save_freq=1",
    ),
    Fault(
        "tensorflow_checkpoint_each_batch", "ST402", "host",
        tensorflow_checkpoints(batches_apart=1), tensorflow_checkpoints(batches_apart=50),
        "tf.train.Checkpoint.write after each batch",
    ),
    Fault(
        "histograms_each_batch", "ST403", "host",
        histograms(batches_apart=1), histograms(batches_apart=24),
        "a histogram of every weight after each batch",
    ),
    Fault(
        "histograms_each_epoch", "ST403", "host",
        histograms_of_a_large_model(epochs_apart=1), histograms_of_a_large_model(epochs_apart=0),
        "histograms of a large model at the end of each epoch",
    ),
    Fault(
        "validation_too_large", "ST404", "compute",
        validated(validation_steps=90), validated(validation_steps=8),
        "validation sees three times as many batches as training",
    ),
    Fault(
        "one_thread_for_ops", "ST407", "compute", threads_for_ops(1), threads_for_ops(None),
        "intra-op threads set to one, on a machine with more cores",
    ),
    Fault(
        "py_function_in_the_loss", "ST408", "host",
        with_loss(focal_in_python), with_loss(focal_in_graph),
        "the loss weighs examples in a py_function",
    ),
    Fault(
        "three_batches_profiled", "ST411", "unknown", profiles_three_batches, profiles_the_epoch,
        "profile_batch=(20, 22): a few steps of the epoch",
    ),
    Fault(
        "nothing_profiled", "ST412", "unknown", profiles_nothing, profiles_the_epoch,
        "event files alone",
    ),
)  # fmt: skip
