"""How long compiled steps wait for other workers, measured by clocks inside their graphs.

One clock starts when everything to be exchanged is ready, and another stops when it has been
exchanged. Nothing waits for either of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from tb_stall_plugin.capture.training.seconds_in_steps import SecondsInSteps, now

raw = tf.raw_ops


class CollectiveWait(SecondsInSteps):
    def around(self, exchanged: Any, exchange: Callable[[], Any]) -> Any:
        """Called in a graph that is being built. Whatever fails, the exchange stays as it is.

        If a process has several replicas, nothing is measured: they wait for each other, too.
        """
        began = _when_there(exchanged)
        received = exchange()
        if began is not None:
            ended = _when_there(received)
            if ended is not None:
                self.add(raw.Sub(x=ended, y=began))
        return received


def _when_there(values: Any) -> Any:
    try:
        # A graph that XLA compiles as a whole has no clock.
        if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
            return None
        with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
            return now()
    except Exception:
        return None
