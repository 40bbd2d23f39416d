"""Measures when a step that runs in a loop inside the graph stopped computing.

With `steps_per_execution`, Keras fetches the next batch while the step computes, and only the time
after the step is a wait. No op of ours may force an order on the two: they run in parallel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.control_flow_v2_func_graphs import WhileBodyFuncGraph

from tb_stall_plugin.capture.training.seconds_in_steps import now

raw = tf.raw_ops


class BusySteps:
    """Keeps a time in a variable that ops find by its name: if they shared a handle, TensorFlow
    would run the fetching after the step."""

    def __init__(self) -> None:
        self._name = f"stall_busy_until_{id(self)}"
        self._kept: Any = None  # the variable lives as long as this
        self._under_way = threading.local()

    def around(self, step: Callable[[], Any], inputs: Any) -> Any:
        """Called in a graph that is being built. Whatever fails, the outputs are the step's own."""
        begun = self._begun(inputs)
        if begun is None:
            return step()
        self._under_way.is_timed = True
        try:
            outputs = step()
        finally:
            self._under_way.is_timed = False
        try:
            self._ended(begun, outputs)
        except Exception:
            self._kept = None  # a step that never ends would hide all waits
        return outputs

    def since(self, began: Any) -> Any:
        """The later of this time and the end of the step; infinity while the step computes."""
        if self._kept is None or not is_in_loop():
            return began
        with tf.device("CPU:0"):
            until = raw.ReadVariableOp(resource=self._handle(), dtype=tf.float64)
            return raw.Maximum(x=began, y=until)

    def _begun(self, inputs: Any) -> Any:
        """None outside of loops, and for calls inside the step itself."""
        if getattr(self._under_way, "is_timed", False) or not is_in_loop():
            return None
        try:
            if self._kept is None:
                with tf.init_scope():
                    self._kept = self._handle()
                    self._assign(self._kept, 0.0)
            tensors = [t for t in tf.nest.flatten(inputs, True) if tf.is_tensor(t)]
            with tf.control_dependencies(tensors):
                return self._assign(self._handle(), math.inf)
        except Exception:
            return None

    def _ended(self, begun: Any, outputs: Any) -> None:
        tensors = [t for t in tf.nest.flatten(outputs, True) if tf.is_tensor(t)]
        with tf.control_dependencies([begun, *tensors]):
            self._assign(self._handle(), now())

    def _handle(self) -> Any:
        with tf.device("CPU:0"):
            return raw.VarHandleOp(dtype=tf.float64, shape=[], shared_name=self._name)

    @staticmethod
    def _assign(handle: Any, seconds: Any) -> Any:
        with tf.device("CPU:0"):
            value = tf.convert_to_tensor(seconds, tf.float64)
            return raw.AssignVariableOp(resource=handle, value=value)


def is_in_loop() -> bool:
    """Whether the graph that is being built is the body of a loop, or inside one."""
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        if isinstance(graph, WhileBodyFuncGraph):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False
