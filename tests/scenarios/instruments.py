"""Clocks inside a training program: Python timers around its calls, timestamps inside its graphs.

All of them read the same wall clock, and none of them reads a trace.
"""

from __future__ import annotations

import contextlib
import functools
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.data.ops import iterator_ops

import tb_stall_plugin as stall
from tests.scenarios.truth import NS_PER_S, Call, Clocks, Interval, Knowledge, steps_of


class StampLog:
    """Times written from inside graphs, in the order in which they happened.

    A staging area takes them: one cheap op per stamp, and no variable that the program could see.
    """

    def __init__(self) -> None:
        self._area = {"shared_name": f"stamps_{id(self)}"}
        self._times_ns: list[int] = []

    def stamp(self, after: Sequence[Any] = ()) -> tf.Tensor:
        """Adds "write the time once `after` is done" to the graph being built; gives the time."""
        with tf.device("CPU:0"):
            with tf.control_dependencies(list(after)):
                now = tf.timestamp()
            tf.raw_ops.Stage(values=[now], **self._area)
        return now

    def times_ns(self) -> list[int]:
        with tf.device("CPU:0"):
            waiting = int(tf.raw_ops.StageSize(dtypes=[tf.float64], **self._area))
            for _ in range(waiting):
                (now,) = tf.raw_ops.Unstage(dtypes=[tf.float64], **self._area)
                self._times_ns.append(round(float(now) * NS_PER_S))
        return list(self._times_ns)


class Instruments:
    """The clocks of one program. Create it first: it puts stamps around every iterator read."""

    def __init__(
        self, logdir: Path, captured: bool = False, books_beside: Path | None = None
    ) -> None:
        self.logdir = logdir
        self.captured = captured  # by StallCallback or watch, instead of TensorFlow's profiler
        self._books_beside = books_beside  # by both of them: a capture's books of the same epoch
        self._watched: stall.watch | None = None
        self.clocks = Clocks()
        self.knowledge = Knowledge()
        self.how: dict[str, str] = {}
        self.notes: list[str] = []
        self._fetch_begin, self._fetch_end = StampLog(), StampLog()
        self._step_begin, self._step_end = StampLog(), StampLog()
        self._eager_fetches: list[Interval] = []
        self._traces_seen = 0
        self._watch_iterators()
        self._watch_step_results()

    # ------------------------------------------------------------ what a scenario calls

    def watch(self, model: keras.Model) -> None:
        """Times each call that fit() and evaluate() make."""
        model.make_train_function()
        model.train_function = self.timed(model.train_function)
        model.make_test_function()
        model.test_function = self.timed(model.test_function, "test")

    def timed(self, function: Callable[..., Any], kind: str = "train") -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            traces, raised, begin = self._traces_seen, True, time.time_ns()
            try:
                result = function(*args, **kwargs)
                raised = False
                return result
            finally:
                interval = Interval(begin, time.time_ns())
                self.clocks.calls.append(Call(kind, interval, self._traces_seen > traces, raised))
                if self._watched is not None and kind == "train" and not raised:
                    self._watched.step()

        return call

    def stamped_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """For the step function of a custom loop, to be wrapped in tf.function afterwards."""

        @functools.wraps(step)
        def with_stamps(*args: Any, **kwargs: Any) -> Any:
            self._traces_seen += 1
            begin = self._step_begin.stamp()
            with tf.control_dependencies([begin]):  # no op may start before the stamp
                args = tuple(tf.identity(a) if tf.is_tensor(a) else a for a in args)
                outputs = step(*args, **kwargs)
            graph = tf.compat.v1.get_default_graph()
            effects = [op for op in graph.get_operations() if op.op_def.is_stateful]
            self._step_end.stamp(after=[*effects, *tf.nest.flatten(outputs)])
            return outputs

        return with_stamps

    @contextlib.contextmanager
    def epoch(self) -> Iterator[None]:
        """Times the epoch of a custom loop."""
        if self._watched is not None:
            self._watched.epoch()
        begin = time.time_ns()
        yield
        self.clocks.epoch = Interval(begin, time.time_ns())

    @contextlib.contextmanager
    def profile(self, logdir: Path | None = None) -> Iterator[None]:
        where = logdir or self.logdir
        with contextlib.ExitStack() as stack:
            if self.captured:
                self._watched = stack.enter_context(stall.watch(where, report=False))
            elif self._books_beside is not None:
                books = stall.watch(self._books_beside, profile=False, report=False)
                self._watched = stack.enter_context(books)
            if not self.captured:
                stack.enter_context(tf.profiler.experimental.Profile(str(where)))
            yield
        self._watched = None

    def fit(
        self,
        model: keras.Model,
        data: Any,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        tensorboard: str | int | None = "batch",
        profiled: bool = True,
        **options: Any,
    ) -> None:
        """model.fit under the profiler, with every clock running."""
        if model.train_function is None:
            self.watch(model)
        logs = {"log_dir": str(self.logdir), "update_freq": tensorboard, "profile_batch": 0}
        board = [] if tensorboard is None else [TimedTensorBoard(self.clocks, **logs)]
        bell = EpochBell(self.clocks)
        if self.captured:
            board, profiled = [stall.StallCallback(self.logdir, report=False)], False
        elif self._books_beside is not None:
            board.append(stall.StallCallback(self._books_beside, profile=False, report=False))
        profiler = tf.profiler.experimental.Profile(str(self.logdir))
        with profiler if profiled else contextlib.nullcontext():
            model.fit(
                data,
                verbose=0,
                callbacks=[bell.begin, *callbacks, *board, bell.end],
                **options,
            )

    def read_stamps(self) -> None:
        """Brings `clocks` up to date with what the graphs wrote."""
        begins, ends = self._fetch_begin.times_ns(), self._fetch_end.times_ns()
        # The read that finds the end of the data begins and does not end, so ends look back.
        in_graph = [Interval(begins[bisect_right(begins, end) - 1], end) for end in ends]
        self.clocks.fetches = [*self._eager_fetches, *in_graph]
        self.clocks.fetches.sort(key=lambda fetch: fetch.begin_ns)
        self.clocks.step_begins = self._step_begin.times_ns()
        self.clocks.step_ends = self._step_end.times_ns()

    def train_step_seconds(self) -> list[float]:
        """For the steps in the epoch, after read_stamps."""
        epoch = self.clocks.epoch
        assert epoch is not None
        return [
            step.interval.length_ns / NS_PER_S
            for step in steps_of(self.clocks)
            if step.kind == "train" and epoch.begin_ns <= step.interval.begin_ns <= epoch.end_ns
        ]

    # ------------------------------------------------------------ hooks into TensorFlow

    def _watch_iterators(self) -> None:
        """Batches are waited for in two ops; iterators also take time to make and to take down."""
        ops = iterator_ops.gen_dataset_ops
        ops.iterator_get_next = self._stamped_fetch(ops.iterator_get_next)
        ops.iterator_get_next_as_optional = self._stamped_fetch(ops.iterator_get_next_as_optional)
        iterator = iterator_ops.OwnedIterator
        create = iterator.__init__

        @functools.wraps(create)
        def timed_create(this: Any, *args: Any, **kwargs: Any) -> None:
            with self._iterator_work():
                create(this, *args, **kwargs)

        def timed_delete(this: Any) -> None:
            with self._iterator_work():
                this.__dict__.pop("_iterator_resource", None)

        iterator.__init__ = timed_create
        iterator.__del__ = timed_delete

    @contextlib.contextmanager
    def _iterator_work(self) -> Iterator[None]:
        begin = time.time_ns()
        yield
        if not tf.inside_function():
            self.clocks.iterator_work.append(Interval(begin, time.time_ns()))

    def _stamped_fetch(self, fetch: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fetch)
        def stamped(*args: Any, **kwargs: Any) -> Any:
            if not tf.inside_function():
                begin = time.time_ns()
                try:
                    return fetch(*args, **kwargs)
                finally:
                    self._eager_fetches.append(Interval(begin, time.time_ns()))
            self._traces_seen += 1
            asked = self._fetch_begin.stamp()
            with tf.control_dependencies([asked]):
                batch = fetch(*args, **kwargs)
            arrival = self._fetch_end.stamp(after=tf.nest.flatten(batch))
            with tf.control_dependencies([arrival]):  # no op may take the batch before the stamp
                return tf.nest.map_structure(tf.identity, batch)

        return stamped

    def _watch_step_results(self) -> None:
        """Keras wraps the logs of each step in an Optional, right after the step's last op."""
        from_value = tf.experimental.Optional.from_value

        def stamped_from_value(value: Any) -> Any:
            if tf.inside_function():
                self._step_end.stamp(after=tf.nest.flatten(value))
            return from_value(value)

        tf.experimental.Optional.from_value = staticmethod(stamped_from_value)


def _timed_hook(name: str) -> Callable[..., None]:
    hook = getattr(keras.callbacks.TensorBoard, name)

    @functools.wraps(hook)
    def timed(self: TimedTensorBoard, *args: Any, **kwargs: Any) -> None:
        begin = time.time_ns()
        try:
            hook(self, *args, **kwargs)
        finally:
            self.clocks.logging.append(Interval(begin, time.time_ns()))

    return timed


class TimedTensorBoard(keras.callbacks.TensorBoard):
    """Keras's callback, whose hooks are timed: logging is ours, and no part of the program."""

    def __init__(self, clocks: Clocks, **options: Any) -> None:
        super().__init__(**options)
        self.clocks = clocks

    on_epoch_begin = _timed_hook("on_epoch_begin")
    on_epoch_end = _timed_hook("on_epoch_end")
    on_train_batch_begin = _timed_hook("on_train_batch_begin")
    on_train_batch_end = _timed_hook("on_train_batch_end")
    on_test_begin = _timed_hook("on_test_begin")
    on_test_end = _timed_hook("on_test_end")
    on_test_batch_begin = _timed_hook("on_test_batch_begin")


class EpochBell:
    """Rings at the very first and the very last moment of epoch 0 that a callback can see."""

    def __init__(self, clocks: Clocks) -> None:
        begin_ns = 0

        def note_begin(epoch: int, logs: Any = None) -> None:
            nonlocal begin_ns
            if epoch == 0:
                begin_ns = time.time_ns()

        def note_end(epoch: int, logs: Any = None) -> None:
            if epoch == 0:
                clocks.epoch = Interval(begin_ns, time.time_ns())

        self.begin = keras.callbacks.LambdaCallback(on_epoch_begin=note_begin)
        self.end = keras.callbacks.LambdaCallback(on_epoch_end=note_end)
