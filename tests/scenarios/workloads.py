"""Small models and datasets that the scenarios share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

FEATURES = 64
CLASSES = 10


def arrays(rows: int, features: int = FEATURES) -> tuple[Any, Any]:
    random = np.random.default_rng(seed=1)
    x = random.normal(size=(rows, features)).astype("float32")
    y = random.integers(0, CLASSES, size=rows).astype("int32")
    return x, y


def batches(steps: int, batch: int = 64, features: int = FEATURES) -> tf.data.Dataset:
    """Ready batches: hardly any input cost."""
    x, y = arrays(batch, features)
    one = tf.data.Dataset.from_tensors((x, y))
    return one.cache().repeat(steps).prefetch(2)


def rows(count: int, features: int = FEATURES) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays(count, features))


def sleepy_batches(
    pauses_s: float | Sequence[float], batch: int = 64, first_s: float = 0.0, fixed: bool = False
) -> tf.data.Dataset:
    """From a Python generator that waits before each batch, and longer before the first.

    One pause for all batches: it never ends. `fixed`: their size is known beforehand.
    """

    def read() -> Iterator[tuple[Any, Any]]:
        x, y = arrays(batch)
        time.sleep(first_s)
        for pause_s in repeat(pauses_s) if isinstance(pauses_s, float) else pauses_s:
            time.sleep(pause_s)
            yield x, y

    known = signature(batch=batch if fixed else None)
    return tf.data.Dataset.from_generator(read, output_signature=known)


def sleeping(
    seconds: float, call: Callable[..., Any] = tf.numpy_function
) -> Callable[[Any, Any], tuple[Any, Any]]:
    """For a map: Python that waits for something outside of the machine."""

    def wait(x: Any) -> Any:
        time.sleep(seconds)
        return x

    def load(x: Any, y: Any) -> tuple[Any, Any]:
        return tf.ensure_shape(call(wait, [x], tf.float32), x.shape), y

    return load


def as_written(data: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps TensorFlow from making the pipeline parallel behind our back."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    return data.with_options(options)


def write_records(path: Path, count: int, features: int = FEATURES, compression: str = "") -> None:
    """The same row again and again, in a TFRecord file."""
    row, _ = arrays(1, features)
    options = tf.io.TFRecordOptions(compression_type=compression)
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for _ in range(count):
            writer.write(row.tobytes())


def busy_cores(seed: Any) -> Any:
    """A number that is next to nothing, and takes a long time to compute."""
    noise = tf.random.stateless_normal((160, 160), seed=[1, tf.cast(seed, tf.int32)])
    for _ in range(150):
        noise = tf.tanh(tf.matmul(noise, noise)) * 0.1
    return noise[0, 0] * 1e-9


def dense_model(
    layers: int = 2,
    units: int = 256,
    features: int = FEATURES,
    activation: str = "relu",
    optimizer: Any = "sgd",
    extra: list[keras.layers.Layer] | None = None,
    **compile_options: Any,
) -> keras.Model:
    keras.utils.set_random_seed(1)
    hidden = [keras.layers.Dense(units, activation=activation) for _ in range(layers)]
    model = keras.Sequential(
        [keras.layers.Input((features,)), *(extra or []), *hidden, keras.layers.Dense(CLASSES)]
    )
    loss = compile_options.pop("loss", from_logits())
    model.compile(optimizer, loss=loss, **compile_options)
    return model


def from_logits() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def signature(features: int = FEATURES, batch: int | None = None) -> tuple[Any, Any]:
    return (
        tf.TensorSpec((batch, features), tf.float32),
        tf.TensorSpec((batch,), tf.int32),
    )


def all_reduce(gradients: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce("SUM", gradients)


def replica_step(
    strategy: tf.distribute.Strategy, units: int, sum_up: Callable[[Any], Any] = all_reduce
) -> Callable[[Any, Any], Any]:
    """One step of one of several workers, to be run by the strategy."""
    with strategy.scope():
        hidden = tf.Variable(tf.random.normal((FEATURES, units), seed=1) * 0.05)
        output = tf.Variable(tf.random.normal((units, CLASSES), seed=1) * 0.05)

    def replica_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, hidden)), output)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss = tf.reduce_mean(losses)
        summed = sum_up(tape.gradient(loss, [hidden, output]))
        hidden.assign_sub(0.01 * summed[0])
        output.assign_sub(0.01 * summed[1])
        return loss

    return replica_step


def training_step(model: keras.Model) -> Any:
    """One step of a custom loop, not yet a tf.function."""

    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step
