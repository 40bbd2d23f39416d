"""Trains a model on a few batches with our own optimizer: the user's is never touched."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from tb_stall_plugin.capture.preflight.first_batches import OneBatch
from tb_stall_plugin.capture.preflight.unchanged import plain_variable

# Adam with its usual settings. A batch that none of these rates can fit, no other rate can: Adam's
# steps are about as large as the rate, whatever the size of the gradients.
RATES = (3e-3, 3e-2, 3e-4)
STEPS_OF_RATE = 150
DECAY, DECAY_OF_SQUARES, TINY = 0.9, 0.999, 1e-7
HALF_PRECISION_SCALE = 128.0  # gradients below 6e-8 would be 0


@dataclass
class Look:
    """One step, as it is before its update."""

    loss: float
    data_loss: float  # without penalties on weights and activities
    # The largest absolute value in each weight's gradient; -1 for a weight without a gradient.
    largest: np.ndarray[Any, np.dtype[np.float64]]
    outputs: list[Any] = field(default_factory=list)  # of the first batch


class Trial:
    """To be created and run inside `unchanged`."""

    def __init__(self, model: Any, batches: Sequence[OneBatch]) -> None:
        self._model, self._batches = model, batches
        self._scale = HALF_PRECISION_SCALE if _in_half_precision(model) else 1.0
        self._weights: list[Any] = []
        self.is_masked = False
        self.looked = tf.function(self._look, autograph=False).get_concrete_function()
        self._moments: list[Any] = []
        self._step: Any = None

    def look(self) -> Look:
        loss, data_loss, largest, outputs = self.looked()
        return Look(float(loss), float(data_loss), largest.numpy(), [t.numpy() for t in outputs])

    def prepare(self) -> None:
        self._moments = [
            [tf.Variable(tf.zeros(v.shape, tf.float32), trainable=False) for _ in range(2)]
            for v in self._weights
        ]
        spec = tf.TensorSpec((), tf.float32)
        self._step = tf.function(self._train, autograph=False).get_concrete_function(spec)

    def train(self, rate: float, until_s: float, enough: float) -> list[Look]:
        """At most STEPS_OF_RATE steps: fewer if time runs out, or if the loss is low enough."""
        looks: list[Look] = []
        for moment in (moment for pair in self._moments for moment in pair):
            moment.assign(tf.zeros_like(moment))
        for step in range(1, STEPS_OF_RATE + 1):
            corrected = rate * math.sqrt(1 - DECAY_OF_SQUARES**step) / (1 - DECAY**step)
            loss, data_loss, largest = self._step(tf.constant(corrected))
            looks.append(Look(float(loss), float(data_loss), largest.numpy()))
            is_lost = not math.isfinite(looks[-1].loss)
            if is_lost or looks[-1].data_loss < enough or time.perf_counter() > until_s:
                break
        return looks

    # ------------------------------------------------------------ inside the graph

    def _look(self) -> tuple[Any, Any, Any, Any]:
        loss, data_loss, gradients, outputs = self._differentiated()
        return loss, data_loss, _largest(gradients), outputs

    def _train(self, rate: Any) -> tuple[Any, Any, Any]:
        loss, data_loss, gradients, _ = self._differentiated()
        for weight, gradient, (mean, square) in zip(
            self._weights, gradients, self._moments, strict=True
        ):
            if gradient is not None:
                own = tf.cast(gradient, tf.float32)
                mean.assign(DECAY * mean + (1 - DECAY) * own)
                square.assign(DECAY_OF_SQUARES * square + (1 - DECAY_OF_SQUARES) * own**2)
                change = rate * mean / (tf.sqrt(square) + TINY)
                weight.assign_sub(tf.cast(change, weight.dtype))
        return loss, data_loss, _largest(gradients)

    def _differentiated(self) -> tuple[Any, Any, list[Any], list[Any]]:
        with tf.GradientTape() as tape:
            of_batches = [self._loss(batch) for batch in self._batches]
            loss = tf.add_n([loss for loss, _, _ in of_batches]) / len(of_batches)
            scaled = loss * self._scale
        self._weights = [plain_variable(v) for v in self._model.trainable_variables]
        gradients = [_dense(gradient) for gradient in tape.gradient(scaled, self._weights)]
        data_loss = tf.add_n([data_loss for _, data_loss, _ in of_batches]) / len(of_batches)
        unscaled = [None if g is None else g / self._scale for g in gradients]
        return loss, data_loss, unscaled, of_batches[0][2]

    def _loss(self, batch: OneBatch) -> tuple[Any, Any, list[Any]]:
        model = self._model
        takes_training = getattr(model, "_call_has_training_arg", True)
        outputs = model(batch.x, training=True) if takes_training else model(batch.x)
        loss = tf.cast(model.compute_loss(batch.x, batch.y, outputs, batch.weights), tf.float32)
        flat = tf.nest.flatten(outputs)
        self.is_masked = any(getattr(t, "_keras_mask", None) is not None for t in flat)
        penalties = [tf.cast(tf.reduce_sum(extra), tf.float32) for extra in model.losses]
        return loss, loss - tf.add_n([tf.constant(0.0), *penalties]), flat

    @property
    def names(self) -> list[str]:
        """For each weight, the name of its layer."""
        weights = self._model.trainable_variables
        paths = [getattr(v, "path", None) or v.name.removesuffix(":0") for v in weights]
        return [path.rsplit("/", 2)[-2] if "/" in path else path for path in paths]


def _in_half_precision(model: Any) -> bool:
    layers = [model, *getattr(model, "layers", ())]
    return any(getattr(layer, "compute_dtype", None) == "float16" for layer in layers)


def _dense(gradient: Any) -> Any:
    return None if gradient is None else tf.convert_to_tensor(gradient)


def _largest(gradients: list[Any]) -> Any:
    """The largest absolute value of each gradient; NaN if it contains a NaN."""
    found = [
        tf.constant(-1.0)
        if g is None
        else tf.reduce_max(tf.abs(tf.cast(g, tf.float32)))
        + 0 * tf.reduce_sum(tf.cast(g, tf.float32))
        for g in gradients
    ]
    return tf.stack(found) if found else tf.zeros((0,))
