"""The measuring ops of one step: begun before the optimizer's update, finished after it.

Everything that costs is behind a condition, and the condition has no side effects: a strategy
forbids them there. Weights are sampled inside of it, so that nothing still holds them when the
update writes: TensorFlow would have to copy them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture import loss_scaling
from tb_stall_plugin.capture.layers import SAMPLE, Watched
from tb_stall_plugin.capture.reading import NOT_MEASURED, vector_length

EVERY = 16  # of the first so many steps each is due, then one in so many


def is_due(step: Any) -> Any:
    """Of a number or a tensor. The last of each period is due, because gradients that are
    accumulated over 2, 4, 8 or 16 steps are applied then."""
    return (step < EVERY) | ((step + 1) % EVERY == 0)


class Variables:
    """What outlives a step. It belongs to no model, no checkpoint and no strategy."""

    def __init__(self, layers: int) -> None:
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False, name="stall_count")
        self.skipped = tf.Variable(0.0, trainable=False, name="stall_skipped")
        self.vector = tf.Variable(
            tf.zeros([vector_length(layers)]), trainable=False, name="stall_vector"
        )


@dataclass(frozen=True)
class Layer:
    """A watched layer in this step. Gradients may be missing."""

    watched: Watched
    weight: Any  # the variable
    gradient: Any
    bias_gradient: Any


class Step:
    """Made before the update."""

    def __init__(
        self,
        variables: Variables,
        optimizer: Any,
        layers: Sequence[Layer],
        loss: Any,
        replicas: int,
    ) -> None:
        self._variables = variables
        self._optimizer = optimizer
        self._layers = layers
        self._loss = loss if _is_of_this_step(loss) else None
        self._replicas = replicas
        self._scale = _number(loss_scaling.scale_of(optimizer))
        self._width = min(SAMPLE, max(layer.watched.size for layer in layers))
        self._step = variables.count.read_value()
        self._due = is_due(self._step)
        self._learning_rate, self._before = tf.cond(
            self._due,
            lambda: (_learning_rate(optimizer), self._samples()),
            lambda: (NOT_MEASURED, tf.zeros([len(layers), self._width])),
        )

    def finish(self) -> None:
        """After the update."""
        skipped = self._count_skipped()
        vector = tf.cond(
            self._due, lambda: self._measured(skipped), self._variables.vector.read_value
        )
        self._variables.vector.assign(vector)
        self._variables.count.assign_add(1)

    def _count_skipped(self) -> Any:
        finite_steps = loss_scaling.finite_steps(self._optimizer)
        if finite_steps is None:
            return NOT_MEASURED
        is_raised = _number(loss_scaling.scale_of(self._optimizer)) > self._scale
        is_skipped = (_number(finite_steps) == 0) & ~is_raised
        return self._variables.skipped.assign_add(tf.cast(is_skipped, tf.float32)).read_value()

    def _measured(self, skipped: Any) -> Any:
        """The whole vector, in the order of `reading`."""
        factor = float(self._replicas)  # each replica has its share of the mean over the batch
        head = [
            tf.cast(self._step + 1, tf.float32),
            float(self._loss is not None),
            0.0 if self._loss is None else _number(self._loss) * factor,
            self._learning_rate,
            NOT_MEASURED if self._scale is None else self._scale,
            skipped,
        ]
        if self._scale is not None and loss_scaling.hands_over_scaled_gradients(self._optimizer):
            factor = factor / self._scale
        squares = tf.stack([_square(layer.gradient) for layer in self._layers])
        squares = tf.where(squares < 0, squares, squares * factor * factor)
        change = tf.reduce_sum(tf.square(self._samples() - self._before), axis=1)
        weight = tf.reduce_sum(tf.square(self._before), axis=1)
        dead = tf.stack([_dead_share(layer) for layer in self._layers])
        return tf.concat([tf.stack(head), squares, change, weight, dead], axis=0)

    def _samples(self) -> Any:
        """[layer, element]; of a small weight all elements, and zeros after them."""
        return tf.stack([self._sample_of(layer) for layer in self._layers])

    def _sample_of(self, layer: Layer) -> Any:
        watched = layer.watched
        if isinstance(layer.gradient, tf.IndexedSlices):
            # Of an embedding only the rows in use change. The 0 is there in case none is.
            row = watched.size // watched.shape[0]
            taken = min(max(self._width // row, 1) * row, self._width)
            used = tf.concat([tf.cast(layer.gradient.indices, tf.int64), [0]], axis=0)
            numbers = tf.range(math.ceil(taken / row), dtype=tf.int64)
            chosen = tf.gather(used, numbers % tf.size(used, out_type=tf.int64))
            flat = tf.reshape(tf.gather(layer.weight, chosen), [-1])[:taken]
        else:
            taken = min(math.ceil(watched.size / watched.stride), self._width)
            flat = tf.reshape(layer.weight, [-1])[: taken * watched.stride : watched.stride]
        flat = tf.cast(flat, tf.float32)
        return flat if taken == self._width else tf.pad(flat, [[0, self._width - taken]])


def _square(gradient: Any) -> Any:
    """Sum of the squares; of an embedding without adding up the rows that occur twice."""
    if gradient is None:
        return NOT_MEASURED
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    return 2.0 * tf.nn.l2_loss(tf.cast(values, tf.float32))


def _dead_share(layer: Layer) -> Any:
    """Share of the units that learned nothing from the batch: gradients of exactly zero."""
    units, shape = layer.bias_gradient, layer.watched.shape
    if units is None:
        if not tf.is_tensor(layer.gradient) or isinstance(layer.gradient, tf.IndexedSlices):
            return NOT_MEASURED
        if len(shape) < 2 or shape[-1] < 2:  # depthwise: the last axis does not count units
            return NOT_MEASURED
        units = tf.reduce_max(tf.abs(layer.gradient), axis=list(range(len(shape) - 1)))
    return tf.reduce_mean(tf.cast(tf.equal(units, 0), tf.float32))


def _learning_rate(optimizer: Any) -> Any:
    try:
        return _number(optimizer.learning_rate)
    except Exception:  # there are optimizers without
        return NOT_MEASURED


def _is_of_this_step(loss: Any) -> bool:
    """One number, and not left over from another trace."""
    if not tf.is_tensor(loss) or loss.shape.rank != 0:
        return False
    return tf.executing_eagerly() or loss.graph is tf.compat.v1.get_default_graph()


def _number(value: Any) -> Any:
    return None if value is None else tf.cast(tf.convert_to_tensor(value), tf.float32)
