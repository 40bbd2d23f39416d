"""Programs under TensorFlow's debugger, or with histograms: what those must tell."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import Fault, Program, forms
from tests.scenarios.faults.learnable import blobs, classifier, pictures
from tests.scenarios.faults.numerics import log_loss, missing_values
from tests.scenarios.workloads import from_logits


@forms
def dumped(logdir: str, program: Program, mode: str = "FULL_HEALTH", records: int = -1) -> None:
    """The program under the debugger, which keeps that many records (-1: all)."""
    tf.debugging.experimental.enable_dump_debug_info(
        logdir, tensor_debug_mode=mode, circular_buffer_size=records
    )
    try:
        program(logdir)
    finally:
        tf.debugging.experimental.disable_dump_debug_info()


def fit(
    logdir: str, model: keras.Model, x: Any, y: Any = None, epochs: int = 2, histograms: int = 0
) -> None:
    """Without the profiler: most of what it would show is the debugger's own work."""
    board = keras.callbacks.TensorBoard(
        logdir, update_freq="batch", profile_batch=0, histogram_freq=histograms
    )
    model.fit(x, y, epochs=epochs, verbose=0, callbacks=[board])


@forms
def twins(logdir: str, epsilon: float) -> None:
    """Pulls pairs together. Equal ones have the distance 0, where the slope of sqrt is infinite."""

    def distance(truth: Any, difference: Any) -> Any:
        squares = tf.reduce_sum(difference**2, axis=-1)
        return tf.reduce_mean(tf.sqrt(squares + epsilon))

    keras.utils.set_random_seed(1)
    x, _ = blobs(960)
    other = x + np.random.default_rng(9).normal(scale=0.1, size=x.shape).astype("float32")
    other[500] = x[500]
    left, right = keras.Input((x.shape[1],)), keras.Input((x.shape[1],))
    embed = keras.layers.Dense(8)
    model = keras.Model([left, right], embed(left) - embed(right))
    model.compile(keras.optimizers.SGD(0.01), distance)
    pairs = tf.data.Dataset.from_tensor_slices(((x, other), np.zeros(len(x), "float32")))
    fit(logdir, model, pairs.batch(32))


@forms
def rectified(logdir: str, /, activation: str, rate: float, scale: float, **options: int) -> None:
    """Pixels as they are, and steps too long for them: the first one kills the hidden layer."""
    x, y = pictures()
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input(x.shape[1:]),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation=activation, name="hidden"),
            keras.layers.Dense(5),
        ]
    )
    model.compile(keras.optimizers.SGD(rate), from_logits())
    fit(logdir, model, x / scale, y, **({"epochs": 3} | options))


def plain_classifier(logdir: str) -> None:
    """Half of the outputs of its rectifiers are zeros, as they should be."""
    fit(logdir, classifier(), *blobs(960))


class Attention(keras.layers.Layer):
    """Looks back only: what comes later is masked by minus infinity, which softmax takes away."""

    def call(self, x: Any) -> Any:
        scores = tf.matmul(x, x, transpose_b=True)
        later = tf.linalg.band_part(tf.ones_like(scores), -1, 0) == 0
        return tf.matmul(tf.nn.softmax(tf.where(later, -np.inf, scores)), x)


def masked_attention(logdir: str) -> None:
    """Infinities on purpose."""
    x, y = blobs(960)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((x.shape[1],)),
            keras.layers.Reshape((4, -1)),
            Attention(),
            keras.layers.Flatten(),
            keras.layers.Dense(5),
        ]
    )
    model.compile("adam", from_logits())
    fit(logdir, model, x, y)


def _fault(name: str, finding: str, faulty: Program, fixed: Program, description: str) -> Fault:
    return Fault(name, finding, "numerics", faulty, fixed, description)


def _healthy(name: str, program: Program, description: str) -> Fault:
    return Fault(name, None, "numerics", program, None, description, healthy=True)


FAULTS = (
    _fault(
        "dump_log_of_zero", "ST313", dumped(log_loss(0.0)), dumped(log_loss(1e-7)),
        "a logarithm of zero in a loss by hand, under the debugger",
    ),
    _fault(
        "dump_nan_in_data", "ST313",
        dumped(missing_values(False), "CURT_HEALTH"), dumped(missing_values(True), "CURT_HEALTH"),
        "one missing value in the data, under the debugger",
    ),
    _fault(
        "dump_slope_of_sqrt", "ST313",
        dumped(twins(0.0), "CONCISE_HEALTH"), dumped(twins(1e-12), "CONCISE_HEALTH"),
        "the gradient of sqrt at zero, under the debugger",
    ),
    _fault(
        "dump_of_the_last_records", "ST313",
        dumped(missing_values(False), records=1000), dumped(missing_values(True), records=1000),
        "one missing value, and a buffer that has forgotten where it was",
    ),
    _fault(
        "dump_dead_relu", "ST312",
        dumped(rectified("relu", 0.1, 1.0)), dumped(rectified("leaky_relu", 0.01, 255.0)),
        "pixels from 0 to 255 kill the units of a hidden layer",
    ),
    _fault(
        "histograms_of_dead_relu", "ST312",
        rectified("relu", 0.1, 1.0, epochs=9, histograms=1),
        rectified("leaky_relu", 0.01, 255.0, epochs=9, histograms=1),
        "the same without the debugger, with histograms of the weights",
    ),
    _healthy("healthy_dump", dumped(plain_classifier), "a healthy classifier under the debugger"),
    _healthy(
        "healthy_dump_masked_attention", dumped(masked_attention, "CONCISE_HEALTH"),
        "a mask of minus infinity, under the debugger",
    ),
)  # fmt: skip
