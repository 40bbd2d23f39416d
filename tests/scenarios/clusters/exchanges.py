"""When a worker comes to each exchange of a step, and leaves it, by clocks in its own graph.

A step may have several: `next` of a distributed dataset asks whether every worker has a batch. All
workers come from one exchange and meet in the next, so whoever takes longest on its way is waited
for. (An exchange itself does not end for all at once: four workers on two cores take turns.)
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.distribute.cross_device_ops import CollectiveAllReduce

MOST_EXCHANGES = 8  # in a step


class Writes(Protocol):
    def write(self, what: str, begin_ns: int, end_ns: int) -> None: ...


class Exchanges:
    """Of graphs that are built from now on."""

    def __init__(self) -> None:
        self._came_s = [_clock() for _ in range(MOST_EXCHANGES)]
        self._left_s = [_clock() for _ in range(MOST_EXCHANGES)]
        self._built: Counter[Any] = Counter()  # by the graph of the step
        exchange = CollectiveAllReduce._all_reduce

        @functools.wraps(exchange)
        def noted(ops: Any, reduce_op: Any, value: Any, *rest: Any, **options: Any) -> Any:
            if tf.executing_eagerly():
                return exchange(ops, reduce_op, value, *rest, **options)
            number = self._number()
            _note(self._came_s[number], value)
            received = exchange(ops, reduce_op, value, *rest, **options)
            _note(self._left_s[number], received)
            return received

        CollectiveAllReduce._all_reduce = noted

    def _number(self) -> int:
        graph = tf.compat.v1.get_default_graph()
        while getattr(graph, "outer_graph", None) and graph.outer_graph.building_function:
            graph = graph.outer_graph
        self._built[graph] += 1
        return self._built[graph] - 1

    def write(self, diary: Writes) -> None:
        """After a step: its exchanges."""
        for number, (came_s, left_s) in enumerate(zip(self._came_s, self._left_s, strict=True)):
            if float(came_s):
                times_ns = [round(1e9 * float(at_s)) for at_s in (came_s, left_s)]
                diary.write(f"exchange {number}", *times_ns)


def _clock() -> tf.Variable:
    return tf.Variable(0.0, dtype=tf.float64, trainable=False)


def _note(at_s: tf.Variable, values: Any) -> None:
    with tf.control_dependencies(tf.nest.flatten(values, expand_composites=True)):
        at_s.assign(tf.timestamp())
