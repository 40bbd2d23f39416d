"""What compiled steps wait for their batches, by clocks inside of their graphs.

Four small ops around `get_next`, put in while the step is traced: the batch goes on unchanged, when
the time has been taken. The seconds add up in a variable, which is read from outside now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.training.strategies import runs_elsewhere

raw = tf.raw_ops


class InputWait:
    """It must live as long as the steps that were traced with it, for the variable's sake."""

    def __init__(self) -> None:
        self._waited: tf.Variable | None = None
        self._read_s = 0.0

    def around(self, get_next: Callable[[], Any]) -> Any:
        """In a graph that is being built. Whatever fails, the batch is what it would have been."""
        try:
            began = None if runs_elsewhere(tf.distribute.get_strategy()) else raw.Timestamp()
        except Exception:
            began = None
        if began is None:
            return get_next()
        with tf.control_dependencies([began]):
            batch = get_next()
        try:
            return self._timed(began, batch)
        except Exception:
            return batch

    def _timed(self, began: Any, batch: Any) -> Any:
        tensors = tf.nest.flatten(batch, expand_composites=True)
        if self._waited is None:
            self._waited = _variable_of_our_own()
        with tf.control_dependencies(tensors):
            waited = raw.Sub(x=raw.Timestamp(), y=began)
        raw.AssignAddVariableOp(resource=self._waited.handle, value=waited)
        with tf.control_dependencies([waited]):
            passed_on = [tf.identity(tensor) for tensor in tensors]
        return tf.nest.pack_sequence_as(batch, passed_on, expand_composites=True)

    def take(self) -> float:
        """Seconds since it was last asked."""
        if self._waited is None:
            return 0.0
        read = raw.ReadVariableOp(resource=self._waited.handle, dtype=tf.float64)
        in_all_s = float(read.numpy())
        taken_s, self._read_s = in_all_s - self._read_s, in_all_s
        return taken_s


def _variable_of_our_own() -> tf.Variable:
    """Made in a thread of its own, which knows no graph and no strategy."""

    def make() -> tf.Variable:
        with tf.device("CPU:0"):
            return tf.Variable(0.0, dtype=tf.float64, trainable=False)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
