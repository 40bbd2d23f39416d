"""How much a step changes the weights: compares a sample of each with the same one step later.

Elements are gathered from outside, between two steps: the step itself is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_stall_plugin.capture.training.watched_layers import WatchedLayer

Sample = list[npt.NDArray[np.float32]]


class UpdateMeter:
    def __init__(self, layers: Sequence[WatchedLayer], weights: Sequence[Any]) -> None:
        """`weights`: TensorFlow's variables of one replica."""
        self._weights = weights
        self._places = [
            _on_device_of(weight, np.stack(np.unravel_index(watched.sampled(), watched.shape), -1))
            for watched, weight in zip(layers, weights, strict=True)
        ]
        self._last: Sample | None = None

    def forget(self) -> None:
        """Called when steps follow that are not looked at."""
        self._last = None

    def look(self) -> list[tuple[float, float]] | None:
        """For each layer, if there was an earlier look: the sums of squares of the changes, and of
        the weights before."""
        before, self._last = self._last, self._gathered()
        if before is None:
            return None
        with np.errstate(all="ignore"):  # NaN weights are not ours to warn about
            return [
                (float(np.square(now - then).sum()), float(np.square(then).sum()))
                for now, then in zip(self._last, before, strict=True)
            ]

    def _gathered(self) -> Sample:
        # Starts all ops before it waits for the first result.
        gathered = [
            tf.raw_ops.ResourceGatherNd(resource=weight.handle, indices=places, dtype=weight.dtype)
            for weight, places in zip(self._weights, self._places, strict=True)
        ]
        with np.errstate(all="ignore"):
            return [elements.numpy().astype(np.float32) for elements in gathered]


def _on_device_of(weight: Any, places: npt.NDArray[np.int64]) -> Any:
    with tf.device(weight.device):
        return tf.constant(places, tf.int64)
