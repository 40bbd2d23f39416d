"""Clocks for programs whose authors know nothing of the analyzer, and the log that is scored.

    python -m harness FOLDER/NAME.py LOGS CLOCKS.json [--fixed] [--silent]    (in this folder)

runs `main(h)` of the program under the profiler, with scalars of each batch, and writes what the
clocks saw. Nothing of that comes from a trace. --fixed runs the fixed form, --silent logs nothing.
A program begins with `from harness import *` and calls what is public here.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import func_graph

SCRATCH = os.environ.get("BLIND_SCRATCH") or tempfile.gettempdir()
now = time.perf_counter
# Steps of the control with a ready batch: enough for a mean.
MOST_READY_STEPS = 50
# These say where batches come from; a ready batch needs none of them.
OF_INPUT = ("batch_size", "steps_per_epoch", "shuffle")


@dataclass
class Span:
    """Work of the program's own that was timed."""

    what: str
    thread: int
    begin: float
    end: float


@dataclass
class BusyCores:
    """Core seconds that the machine and this process have used by now."""

    at: float
    machine_s: float
    own_s: float

    @classmethod
    def read(cls) -> BusyCores:
        own = os.times()
        ticks = [int(value) for value in Path("/proc/stat").read_text().split()[1:8]]
        used = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
        return cls(now(), used / os.sysconf("SC_CLK_TCK"), own.user + own.system)


@dataclass
class Hooks:
    """When epochs and batches began and ended."""

    epochs: list[list[float]] = field(default_factory=list)
    batches: list[tuple[int, float, float]] = field(default_factory=list)


class Clock(keras.callbacks.Callback):
    """Stands first in the list of callbacks."""

    def __init__(self, h: H) -> None:
        super().__init__()
        self.h = h
        self.hooks = Hooks()
        self._began = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self.h.busy_before is None:
            self.h.busy_before = BusyCores.read()
        self.hooks.epochs.append([now(), now()])

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.hooks.epochs[-1][1] = now()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._began = now()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.hooks.batches.append((len(self.hooks.epochs), self._began, now()))


class LastHook(keras.callbacks.Callback):
    """Stands behind the program's callbacks: what they do at its end belongs to the epoch."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.clock.on_epoch_end(epoch)
        if self.clock.h.busy_after is None:
            self.clock.h.busy_after = BusyCores.read()


class Loop:
    """What a custom loop tells."""

    def __init__(self, hooks: Hooks, writer: tf.summary.SummaryWriter | None) -> None:
        self.hooks, self._writer = hooks, writer
        self._last = now()
        hooks.epochs.append([self._last, self._last])

    def epoch(self) -> None:
        if self.hooks.batches:
            self.end_epoch()
            self.hooks.epochs.append([now(), now()])
        self._last = now()

    def step(self, loss: Any = None) -> None:
        if self._writer is not None and loss is not None:
            with self._writer.as_default(step=len(self.hooks.batches)):
                tf.summary.scalar("batch_loss", loss)
        self.hooks.batches.append((len(self.hooks.epochs), self._last, now()))
        self._last = self.hooks.batches[-1][2]

    def end_epoch(self) -> None:
        self.hooks.epochs[-1][1] = now()


class H:
    """What a program is given: how to log, and which form of it is to run."""

    def __init__(self, logdir: str, fixed: bool, silent: bool) -> None:
        self.logdir, self.fixed = logdir, fixed
        self.mode = "none" if silent else "full"
        self.out: dict[str, Any] = {}
        self.clk: Clock | None = None
        self.main = threading.get_ident()
        self.busy_before: BusyCores | None = None
        self.busy_after: BusyCores | None = None
        self.spans: list[Span] = []
        self._traces: list[Span] = []
        self._time_graph_building()

    # ------------------------------------------------------------ what a program calls

    def fit(
        self,
        model: keras.Model,
        x: Any,
        y: Any = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        epochs: int = 1,
        control: bool = True,
        **options: Any,
    ) -> None:
        self.main = threading.get_ident()
        self.clk = Clock(self)
        watched: list[keras.callbacks.Callback] = [self.clk, *callbacks, LastHook(self.clk)]
        if self.mode == "full":
            board = keras.callbacks.TensorBoard(self.logdir, update_freq="batch", profile_batch=0)
            watched.append(board)
        with self._profile():
            model.fit(x, y, epochs=epochs, callbacks=watched, verbose=0, **options)
        if control and self.mode == "full" and not self.fixed:
            self._controls(model, x, y, callbacks, options)

    @contextlib.contextmanager
    def loop(self, model: Any = None, opt: Any = None) -> Iterator[Loop]:
        self.main = threading.get_ident()
        self.clk = Clock(self)
        self.busy_before = BusyCores.read()
        writer = None
        if self.mode == "full":
            writer = tf.summary.create_file_writer(f"{self.logdir}/train")
        with self._profile():
            told = Loop(self.clk.hooks, writer)
            yield told
            told.end_epoch()

    @contextlib.contextmanager
    def clock(self, what: str) -> Iterator[None]:
        began = now()
        try:
            yield
        finally:
            self.spans.append(Span(what, threading.get_ident(), began, now()))

    def timed(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clock(what):
                return function(*args, **kwargs)

        return call

    def gen(
        self, generator: Callable[[], Any], what: str = "generator"
    ) -> Callable[[], Iterator[Any]]:
        def elements() -> Iterator[Any]:
            source, end = iter(generator()), object()
            while True:
                with self.clock(what):
                    element = next(source, end)
                if element is end:
                    return
                yield element

        return elements

    def build_optimizer(self, model: keras.Model) -> None:
        model.optimizer.build(model.trainable_variables)

    # ------------------------------------------------------------ how it is measured

    def _profile(self) -> contextlib.AbstractContextManager[Any]:
        if self.mode == "none":
            return contextlib.nullcontext()
        profile: contextlib.AbstractContextManager[Any] = tf.profiler.experimental.Profile(
            self.logdir
        )
        return profile

    def _time_graph_building(self) -> None:
        build, depth = func_graph.func_graph_from_py_func, threading.local()

        def timed(*args: Any, **kwargs: Any) -> Any:
            level = getattr(depth, "level", 0)
            depth.level, began = level + 1, now()
            try:
                return build(*args, **kwargs)
            finally:
                depth.level = level
                if level == 0:
                    thread = threading.get_ident()
                    self._traces.append(Span("tracing", thread, began, now()))

        func_graph.func_graph_from_py_func = timed

    def _controls(
        self,
        model: keras.Model,
        x: Any,
        y: Any,
        callbacks: Sequence[keras.callbacks.Callback],
        options: dict[str, Any],
    ) -> None:
        """The epoch again without logs, then with one ready batch in place of the input."""
        assert self.clk is not None
        steps = sum(epoch == 1 for epoch, _, _ in self.clk.hooks.batches)
        again = Clock(self)
        watched = [again, *callbacks, LastHook(again)]
        model.fit(x, y, epochs=1, callbacks=watched, verbose=0, **options)
        self.out["again_s"] = _length(again.hooks.epochs[0])
        batch = _first_batch(x, y, options.get("batch_size", 32))
        if batch is None:
            return
        count = min(steps, MOST_READY_STEPS)
        times = count * (getattr(model, "steps_per_execution", 1) or 1)
        ready = tf.data.Dataset.from_tensors(batch).repeat(times).prefetch(4)
        rest = {
            name: value
            for name, value in options.items()
            if name not in OF_INPUT and not name.startswith("validation")
        }
        for _ in range(2):  # the first may trace again
            again = Clock(self)
            model.fit(ready, epochs=1, callbacks=[again], verbose=0, **rest)
        in_train = sum(end - begin for _, begin, end in again.hooks.batches)
        self.out["one_batch_in_train_s"] = in_train * steps / count

    def clocks(self) -> dict[str, Any]:
        """What was seen of the first epoch."""
        assert self.clk is not None and self.clk.hooks.epochs, "the program trained nothing"
        begin, end = self.clk.hooks.epochs[0]
        steps = [last - first for epoch, first, last in self.clk.hooks.batches if epoch == 1]
        traces = [span for span in map(_within(begin, end), self._traces) if span]
        on_main = [span for span in traces if span.thread == self.main]
        busy = self.busy_after or BusyCores.read()
        return {
            **self.out,
            "epoch_s": end - begin,
            "epochs_s": [_length(epoch) for epoch in self.clk.hooks.epochs],
            "steps": len(steps),
            "first_batch_s": steps[0] if steps else 0.0,
            "in_train_s": sum(steps),
            "tracing_main_s": sum(span.end - span.begin for span in on_main),
            "spans": self._sums(begin, end, on_main),
            "others_cpu": _others(self.busy_before, busy),
        }

    def _sums(self, begin: float, end: float, traces: list[Span]) -> dict[str, dict[str, Any]]:
        sums: dict[str, dict[str, Any]] = {}
        for span in filter(None, map(_within(begin, end), self.spans)):
            new = {"n": 0, "s": 0.0, "tracing_s": 0.0, "on_training_thread": False}
            mine = sums.setdefault(span.what, new)
            mine["n"] += 1
            mine["s"] += span.end - span.begin
            if span.thread == self.main:
                mine["on_training_thread"] = True
                inside = filter(None, map(_within(span.begin, span.end), traces))
                mine["tracing_s"] += sum(trace.end - trace.begin for trace in inside)
        return sums


def _within(begin: float, end: float) -> Callable[[Span], Span | None]:
    def clipped(span: Span) -> Span | None:
        first, last = max(span.begin, begin), min(span.end, end)
        return Span(span.what, span.thread, first, last) if first < last else None

    return clipped


def _length(epoch: Sequence[float]) -> float:
    return epoch[1] - epoch[0]


def _first_batch(x: Any, y: Any, size: int) -> Any:
    if isinstance(x, tf.data.Dataset):
        batch = next(iter(x))
    elif isinstance(x, keras.utils.PyDataset):
        batch = x[0]
    elif y is not None and isinstance(x, (np.ndarray, tf.Tensor)):
        batch = (x[:size], y[:size])
    else:
        return None
    return tuple(batch) if isinstance(batch, list) else batch


def _others(before: BusyCores | None, after: BusyCores) -> float | None:
    """How many cores other programs kept busy."""
    if before is None or after.at <= before.at:
        return None
    machine, own = after.machine_s - before.machine_s, after.own_s - before.own_s
    return (machine - own) / (after.at - before.at)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("logs")
    parser.add_argument("clocks", type=Path)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--silent", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(options.program.parent))
    Path(SCRATCH).mkdir(parents=True, exist_ok=True)
    own = importlib.import_module("harness")  # the copy that the program imports, not __main__
    h = own.H(options.logs, options.fixed, options.silent)
    importlib.import_module(options.program.stem).main(h)
    options.clocks.write_text(json.dumps(h.clocks(), indent=1, default=float))


if __name__ == "__main__":
    _main()
