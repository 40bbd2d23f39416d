"""Adds up seconds measured inside compiled steps, to be read from outside now and then."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.training.strategies import outside_of_graphs_and_strategies

raw = tf.raw_ops


class SecondsInSteps:
    """It must live as long as the steps that were traced with it, because they use its variable."""

    def __init__(self) -> None:
        self._sum: tf.Variable | None = None
        self._read_s = 0.0

    def prepare(self) -> tf.Variable:
        """To be called before a step is traced: the less is done during tracing, the better."""
        if self._sum is None:
            self._sum = outside_of_graphs_and_strategies(_zero)
        return self._sum

    def add(self, seconds: Any) -> None:
        """Called in a graph that is being built."""
        raw.AssignAddVariableOp(resource=self.prepare().handle, value=seconds)

    def take(self) -> float:
        """The seconds since the last call."""
        if self._sum is None:
            return 0.0
        read = raw.ReadVariableOp(resource=self._sum.handle, dtype=tf.float64)
        in_all_s = float(read.numpy())
        taken_s, self._read_s = in_all_s - self._read_s, in_all_s
        return taken_s


def now() -> Any:
    """Runs on the CPU, wherever the ops around it run: only the CPU has a clock."""
    with tf.device("CPU:0"):
        return raw.Timestamp()


def _zero() -> tf.Variable:
    with tf.device("CPU:0"):
        return tf.Variable(0.0, dtype=tf.float64, trainable=False)
