"""Seconds that clocks inside compiled steps add up, to be read from outside now and then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

raw = tf.raw_ops


class SecondsInSteps:
    """It must live as long as the steps that were traced with it, for the variable's sake."""

    def __init__(self) -> None:
        self._sum: tf.Variable | None = None
        self._read_s = 0.0

    def add(self, seconds: Any) -> None:
        """In a graph that is being built."""
        if self._sum is None:
            self._sum = _variable_of_our_own()
        raw.AssignAddVariableOp(resource=self._sum.handle, value=seconds)

    def take(self) -> float:
        """Those since it was last asked."""
        if self._sum is None:
            return 0.0
        read = raw.ReadVariableOp(resource=self._sum.handle, dtype=tf.float64)
        in_all_s = float(read.numpy())
        taken_s, self._read_s = in_all_s - self._read_s, in_all_s
        return taken_s


def now() -> Any:
    """Only processors have a clock, wherever the ops around it run."""
    with tf.device("CPU:0"):
        return raw.Timestamp()


def _variable_of_our_own() -> tf.Variable:
    """Made in a thread of its own, which knows no graph and no strategy."""

    def make() -> tf.Variable:
        with tf.device("CPU:0"):
            return tf.Variable(0.0, dtype=tf.float64, trainable=False)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
