"""How long compiled steps wait for their batches, measured by clocks inside their graphs.

Four small ops are added around `get_next` while the step is traced: the batch is passed on
unchanged after the time has been taken. A batch that is fetched while a step computes is not a
wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.training.busy_steps import BusySteps
from tb_stall_plugin.capture.training.remote_input import RemoteInput
from tb_stall_plugin.capture.training.seconds_in_steps import SecondsInSteps, now
from tb_stall_plugin.capture.training.strategies import is_coordinated, runs_elsewhere

raw = tf.raw_ops


class InputWait(SecondsInSteps):
    def __init__(self) -> None:
        super().__init__()
        self.busy = BusySteps()
        self.elsewhere = RemoteInput()
        self._under_way = threading.local()

    def around(self, get_next: Callable[[], Any]) -> Any:
        """Called in a graph that is being built. Whatever fails, the batch is passed on
        unchanged."""
        began = self._beginning()
        if began is None:
            return get_next()
        self._under_way.is_timed = True
        try:
            with tf.control_dependencies([began]):
                batch = get_next()
        finally:
            self._under_way.is_timed = False
        try:
            return self._timed(began, batch)
        except Exception:
            return batch

    def _beginning(self) -> Any:
        """None inside another one: the batches of several devices are waited for together."""
        if getattr(self._under_way, "is_timed", False):
            return None
        try:
            strategy = tf.distribute.get_strategy()
            if is_coordinated(strategy) and not self.elsewhere.can_time():
                return None
            return now() if is_coordinated(strategy) or not runs_elsewhere(strategy) else None
        except Exception:
            return None

    def _timed(self, began: Any, batch: Any) -> Any:
        is_elsewhere = is_coordinated(tf.distribute.get_strategy())
        tensors = tf.nest.flatten(batch, expand_composites=True)
        with tf.control_dependencies(tensors):
            arrived = now()
            since = began if is_elsewhere else self.busy.since(began)
        waited = raw.Sub(x=arrived, y=since)
        if since is not began:  # the step may compute until after the batch arrives, or forever
            waited = raw.Maximum(x=waited, y=tf.zeros([], tf.float64))
        (self.elsewhere if is_elsewhere else self).add(waited)
        with tf.control_dependencies([arrived]):
            passed_on = [_identity(tensor) for tensor in tensors]
        return tf.nest.pack_sequence_as(batch, passed_on, expand_composites=True)


def _identity(tensor: Any) -> Any:
    """A copy on the same device."""
    with tf.device(tensor.device):
        return tf.identity(tensor)
