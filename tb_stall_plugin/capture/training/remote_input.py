"""How long the workers of a coordinator wait for their batches, inside the steps they run.

The clocks in the graph are those of `input_wait`, but a variable would live in the coordinator's
process. The sums are in a table that is found by its name, and so lives on whichever worker runs
the step. TensorFlow makes it when it is first used, and what is not in it counts as 0: nothing has
to be initialized, not even on a worker that was started again.
"""

from __future__ import annotations

import traceback
import uuid
import weakref
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from stall_analyzer.captures.stack_frames import frame_of
from tb_stall_plugin.capture.process.generated_code import GENERATED, users_line
from tb_stall_plugin.capture.process.thread_stacks import line_of
from tb_stall_plugin.capture.training.busy_steps import is_in_loop

MOST_PLACES = 1000

raw = tf.raw_ops


class RemoteInput:
    """It must live as long as the steps that were traced with it: the workers keep its sums."""

    def __init__(self) -> None:
        self._name = f"stall_input_wait_{uuid.uuid4().hex}"
        self._places: list[str] = []  # each get_next that is timed: path:line function
        # Whether all that a step fetches is timed.
        self._steps: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()

    def can_time(self) -> bool:
        """Called in a graph that is being built, before it gets a batch. In a loop, the next batch
        may be fetched while the step computes."""
        can = not is_in_loop() and len(self._places) < MOST_PLACES
        if not can:
            self._steps[_step_being_built()] = False
        return can

    def add(self, seconds: Any) -> None:
        """Called in a graph that is being built."""
        number = len(self._places)
        with tf.device("CPU:0"):
            table = self._table()
            so_far = _found(table, [number])
            keys = tf.constant([number], tf.int64)
            raw.LookupTableInsertV2(table_handle=table, keys=keys, values=so_far + seconds)
        self._places.append(_users_place())
        self._steps.setdefault(_step_being_built(), True)

    def is_known(self, step: Any) -> bool:
        """Whether the sums tell all that this concrete function waits for its input."""
        known = self._steps.get(step.graph)
        if known is None:
            known = self._steps[step.graph] = not _takes_an_iterator(step)
        return known

    def read(self, worker: str) -> dict[str, float]:
        """How many seconds this worker has waited in each place, since its server began."""
        places = tuple(self._places)
        waited_s: defaultdict[str, float] = defaultdict(float)
        if places:
            with tf.device(f"{worker}/device:CPU:0"):
                found = _found(self._table(), range(len(places)))
            for place, seconds in zip(places, found.numpy(), strict=True):
                waited_s[place] += float(seconds)
        return waited_s

    def _table(self) -> Any:
        return raw.MutableHashTableV2(
            key_dtype=tf.int64, value_dtype=tf.float64, shared_name=self._name
        )


def _found(table: Any, numbers: Iterable[int]) -> Any:
    return raw.LookupTableFindV2(
        table_handle=table,
        keys=tf.constant(list(numbers), tf.int64),
        default_value=tf.constant(0.0, tf.float64),
    )


def _step_being_built() -> Any:
    graph = tf.compat.v1.get_default_graph()
    while isinstance(outer := getattr(graph, "outer_graph", None), FuncGraph):
        graph = outer
    return graph


def _takes_an_iterator(step: Any) -> bool:
    specs = tf.nest.flatten(step.structured_input_signature)
    return any(type(spec).__name__.endswith("IteratorSpec") for spec in specs)


def _users_place() -> str:
    """The innermost line of the user's own code that runs now; empty if it is not known."""
    for frame, line in traceback.walk_stack(None):
        code = frame.f_code
        is_generated = GENERATED in code.co_filename
        place = (users_line(code, line) or "") if is_generated else line_of(code, line)
        seen = frame_of(place)
        if seen is None:
            return ""
        if seen.is_users:
            return place
    return ""
