"""Programs that lose time in Python around the steps, and how to mend them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import Fault, profiled
from tests.scenarios.workloads import CLASSES, batches, dense_model


def every(batches_apart: int, action: Callable[[int], object]) -> keras.callbacks.Callback:
    """A callback that acts after each so many batches."""

    def after(batch: int, logs: Any = None) -> None:
        if (batch + 1) % batches_apart == 0:
            action(batch)

    return keras.callbacks.LambdaCallback(on_train_batch_end=after)


def fit(logdir: str, model: keras.Model, data: Any, *callbacks: Any, **options: Any) -> None:
    with profiled(logdir) as board:
        model.fit(data, verbose=0, callbacks=[*callbacks, board], **options)


def middling_model() -> keras.Model:
    return dense_model(layers=3, units=768)


def middling_batches() -> tf.data.Dataset:
    """Sixty steps of some fifteen milliseconds."""
    return batches(60, batch=256)


# ---------------------------------------------------------------- callbacks


def report_to_a_server(_: int) -> None:
    time.sleep(0.03)  # one round trip


def reports_each_batch(logdir: str) -> None:
    fit(logdir, middling_model(), middling_batches(), every(1, report_to_a_server))


def reports_once(logdir: str) -> None:
    fit(logdir, middling_model(), middling_batches(), every(60, report_to_a_server))


def count_words(_: int) -> None:
    sum(len(str(number)) for number in range(200_000))


def counts_each_batch(logdir: str) -> None:
    fit(logdir, middling_model(), middling_batches(), every(1, count_words))


def counts_sometimes(logdir: str) -> None:
    fit(logdir, middling_model(), middling_batches(), every(30, count_words))


# ---------------------------------------------------------------- checkpoints


def keras_checkpoints(logdir: str, save_freq: str | int) -> None:
    path = Path(logdir).parent / "model.weights.h5"
    save = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=True, save_freq=save_freq)
    fit(logdir, dense_model(layers=3, units=1024), batches(50, batch=16), save)


def saves_each_batch(logdir: str) -> None:
    keras_checkpoints(logdir, save_freq=1)


def saves_each_epoch(logdir: str) -> None:
    keras_checkpoints(logdir, save_freq="epoch")


def tensorflow_checkpoints(logdir: str, batches_apart: int) -> None:
    model = dense_model(layers=3, units=1024)
    checkpoint = tf.train.Checkpoint(model=model)
    prefix = str(Path(logdir).parent / "checkpoint")
    save = every(batches_apart, lambda _: checkpoint.write(prefix))
    fit(logdir, model, batches(50, batch=16), save)


def writes_each_batch(logdir: str) -> None:
    tensorflow_checkpoints(logdir, batches_apart=1)


def writes_once(logdir: str) -> None:
    tensorflow_checkpoints(logdir, batches_apart=50)


# ---------------------------------------------------------------- summaries


def histograms(logdir: str, batches_apart: int) -> None:
    model = dense_model(layers=3, units=384)
    writer = tf.summary.create_file_writer(str(Path(logdir) / "train"))

    def write(batch: int) -> None:
        with writer.as_default(step=batch):
            for number, weight in enumerate(model.trainable_variables):
                tf.summary.histogram(f"weight/{number}", weight.numpy())

    fit(logdir, model, batches(24, batch=256), every(batches_apart, write))


def histograms_each_batch(logdir: str) -> None:
    histograms(logdir, batches_apart=1)


def histograms_once(logdir: str) -> None:
    histograms(logdir, batches_apart=24)


def histograms_of_a_large_model(logdir: str, epochs_apart: int) -> None:
    model = dense_model(layers=3, units=1536)
    with profiled(logdir) as board:
        board.histogram_freq = epochs_apart  # 0: never
        model.fit(batches(20, batch=64), epochs=2, callbacks=[board], verbose=0)


def histograms_each_epoch(logdir: str) -> None:
    histograms_of_a_large_model(logdir, epochs_apart=1)


def no_histograms(logdir: str) -> None:
    histograms_of_a_large_model(logdir, epochs_apart=0)


# ---------------------------------------------------------------- threads


def one_thread_for_ops(logdir: str) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    fit(logdir, dense_model(layers=3, units=1024), batches(60, batch=512))


def threads_as_they_come(logdir: str) -> None:
    fit(logdir, dense_model(layers=3, units=1024), batches(60, batch=512))


# ---------------------------------------------------------------- validation


def validated(logdir: str, validation_steps: int) -> None:
    model = dense_model(layers=3, units=768)
    data = batches(30, batch=768)
    fit(logdir, model, data, validation_data=batches(validation_steps, batch=768))


def validates_on_too_much(logdir: str) -> None:
    validated(logdir, validation_steps=90)


def validates_on_enough(logdir: str) -> None:
    validated(logdir, validation_steps=8)


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


def loss_in_python(logdir: str) -> None:
    fit(logdir, dense_model(loss=focal_in_python), batches(80, batch=2048))


def loss_in_graph(logdir: str) -> None:
    fit(logdir, dense_model(loss=focal_in_graph), batches(80, batch=2048))


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
        name="callback_waits",
        finding="ST401",
        bucket="host",
        faulty=reports_each_batch,
        fixed=reports_once,
        description="a callback talks to a server after each batch",
    ),
    Fault(
        name="callback_computes",
        finding="ST401",
        bucket="host",
        faulty=counts_each_batch,
        fixed=counts_sometimes,
        description="a callback computes in Python after each batch",
    ),
    Fault(
        name="keras_checkpoint_each_batch",
        finding="ST402",
        bucket="host",
        faulty=saves_each_batch,
        fixed=saves_each_epoch,
        description="ModelCheckpoint with save_freq=1",
    ),
    Fault(
        name="tensorflow_checkpoint_each_batch",
        finding="ST402",
        bucket="host",
        faulty=writes_each_batch,
        fixed=writes_once,
        description="tf.train.Checkpoint.write after each batch",
    ),
    Fault(
        name="histograms_each_batch",
        finding="ST403",
        bucket="host",
        faulty=histograms_each_batch,
        fixed=histograms_once,
        description="a histogram of every weight after each batch",
    ),
    Fault(
        name="histograms_each_epoch",
        finding="ST403",
        bucket="host",
        faulty=histograms_each_epoch,
        fixed=no_histograms,
        description="histograms of a large model at the end of each epoch",
    ),
    Fault(
        name="validation_too_large",
        finding="ST404",
        bucket="compute",
        faulty=validates_on_too_much,
        fixed=validates_on_enough,
        description="validation sees three times as many batches as training",
    ),
    Fault(
        name="one_thread_for_ops",
        finding="ST407",
        bucket="compute",
        faulty=one_thread_for_ops,
        fixed=threads_as_they_come,
        description="intra-op threads set to one, on a machine with more cores",
    ),
    Fault(
        name="py_function_in_the_loss",
        finding="ST408",
        bucket="host",
        faulty=loss_in_python,
        fixed=loss_in_graph,
        description="the loss weighs examples in a py_function",
    ),
    Fault(
        name="three_batches_profiled",
        finding="ST411",
        bucket="unknown",
        faulty=profiles_three_batches,
        fixed=profiles_the_epoch,
        description="profile_batch=(20, 22): a few steps of the epoch",
    ),
    Fault(
        name="nothing_profiled",
        finding="ST412",
        bucket="unknown",
        faulty=profiles_nothing,
        fixed=profiles_the_epoch,
        description="event files alone",
    ),
)
