"""How long compiled steps wait for other workers, by clocks inside their graphs.

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
        """In a graph that is being built. Whatever fails, the exchange is what it would have been.

        Where a process has several replicas, one waits for the others of the same process, too:
        those are left alone.
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
        # What XLA compiles as a whole has no clock.
        if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
            return None
        with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
            return now()
    except Exception:
        return None
