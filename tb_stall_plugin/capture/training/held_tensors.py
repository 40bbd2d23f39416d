"""Tensors of a compiled step, kept until they are looked at after the step.

This takes two small ops, however many tensors there are: one puts all of them into one value, and
the other lets a variable refer to it. Nothing is copied or computed inside the step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_stall_plugin.capture.training.strategies import outside_of_graphs_and_strategies

raw = tf.raw_ops

Arrays = list[npt.NDArray[Any]]


class HeldTensors:
    """It must live as long as the steps that were traced with it, because they use its variables.
    To be created outside of graphs and strategies."""

    def __init__(self) -> None:
        # A variable for each combination of what is kept and its types, which reading it needs.
        self._variables: dict[tuple[Hashable, tuple[Any, ...]], Any] = {}
        self._eager: tuple[Hashable, list[Any]] | None = None
        self._nothing: Any = None
        self._ready = [self._variable()]  # most trainings need only one

    def put(self, what: Hashable, tensors: Sequence[Any]) -> None:
        """Called inside the step; `what` says what they are."""
        if tf.executing_eagerly():
            self._eager = what, list(tensors)
            return
        key = what, tuple(tensor.dtype for tensor in tensors)
        if key not in self._variables:
            self._variables[key] = (
                self._ready.pop()
                if self._ready
                else outside_of_graphs_and_strategies(self._variable)
            )
        value = raw.OptionalFromValue(components=tensors)
        raw.AssignVariableOp(resource=self._variables[key].handle, value=value)

    def taken(self) -> tuple[Any, Arrays] | None:
        """The tensors that were put in last, and what they are. Waits for the step to end."""
        found = self._found()
        if found is None:
            return None
        what, tensors = found
        arrays = [np.asarray(tensor) for tensor in tensors]
        self.let_go()
        return what, arrays

    def let_go(self) -> None:
        self._eager = None
        for variable in self._variables.values():
            raw.AssignVariableOp(resource=variable.handle, value=self._nothing)

    def _found(self) -> tuple[Hashable, Sequence[Any]] | None:
        if self._eager is not None:
            return self._eager
        for (what, types), variable in self._variables.items():
            held = raw.ReadVariableOp(resource=variable.handle, dtype=tf.variant)
            if raw.OptionalHasValue(optional=held).numpy():
                shapes = [tf.TensorShape(None)] * len(types)
                return what, raw.OptionalGetValue(
                    optional=held, output_types=types, output_shapes=shapes
                )
        return None

    def _variable(self) -> Any:
        with tf.device("CPU:0"):
            self._nothing = raw.OptionalNone()
            return tf.Variable(self._nothing, trainable=False)
