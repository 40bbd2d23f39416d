"""What StallCallback costs: trains with it and without it, taking turns, in one process.

Two figures for a tiny, a small and a medium model:

    steady state   two models train at once and take turns, a few steps each: the time of their
                   turns, and the processor time, which other load on the machine affects less
    first epoch    of a new model each time, tracing and profiling included: in all, the first step,
                   steps 2 to 20, and the rest

Two runs differ by a few percent even if they do the same, depending on which cores the system puts
their threads on. So each round has one of each, in random order, and the median of the
differences comes with the range in which it lies in nine of ten repetitions. The range gets
narrower with more rounds; what it still includes is not known.

    python benchmarks/capture.py [--models tiny small medium] [--rounds N] [--turns N] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.process.guard import guard

keras = tf.keras
CLASSES = 10
REPETITIONS = 1000  # of choosing rounds at random, to see how far their median varies


@dataclass(frozen=True)
class Kind:
    turn_steps: int  # per turn in the steady state
    epoch_steps: int

    def model(self) -> Any:
        raise NotImplementedError

    def data(self) -> Any:
        raise NotImplementedError


class Tiny(Kind):
    """As few ops as a training can have: most of a step is the overhead of TensorFlow itself."""

    def model(self) -> Any:
        layers = [keras.layers.Dense(64, activation="relu") for _ in range(3)]
        return _compiled([keras.layers.Input((32,)), *layers])

    def data(self) -> Any:
        return _batches((4096, 32), 32)


class Small(Kind):
    """What tutorials begin with: two dense layers for digits of 28 x 28 pixels."""

    def model(self) -> Any:
        layers: list[Any] = [keras.layers.Input((784,))]
        for _ in range(2):
            layers += [keras.layers.Dense(512, activation="relu"), keras.layers.Dropout(0.2)]
        return _compiled(layers)

    def data(self) -> Any:
        return _batches((4096, 784), 128)


class Medium(Kind):
    """A convolutional net."""

    def model(self) -> Any:
        layers: list[Any] = [keras.layers.Input((64, 64, 3))]
        for filters in (32, 32, 64, 64):
            layers += [
                keras.layers.Conv2D(filters, 3, padding="same", use_bias=False),
                keras.layers.BatchNormalization(),
                keras.layers.ReLU(),
                keras.layers.MaxPooling2D(),
            ]
        return _compiled([*layers, keras.layers.GlobalAveragePooling2D()])

    def data(self) -> Any:
        return _batches((256, 64, 64, 3), 16)


KINDS: dict[str, Kind] = {
    "tiny": Tiny(100, 2000),
    "small": Small(25, 500),
    "medium": Medium(5, 100),
}


def _compiled(layers: list[Any]) -> Any:
    model = keras.Sequential([*layers, keras.layers.Dense(CLASSES)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def _batches(shape: tuple[int, ...], batch: int) -> Any:
    generator = np.random.default_rng(0)
    x = generator.normal(size=shape).astype("float32")
    y = generator.integers(0, CLASSES, shape[0])
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch).prefetch(2)


@dataclass
class Turns:
    """Knows whose turn it is. Each training waits before its first step, and after each turn."""

    left: int
    now: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def next_turn(self, mine: int) -> None:
        with self.changed:
            self.now = 1 - mine
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.now == mine)


class TakesTurns(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Hooks only the beginning of batches, so that Keras ends them as it does without callbacks."""

    def __init__(self, turns: Turns, mine: int, steps: int) -> None:
        super().__init__()
        self.turns, self.mine, self.steps = turns, mine, steps
        self.seconds: list[float] = []
        self.processor_s: list[float] = []
        self.began_s = self.processor_began_s = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch % self.steps == 0:
            if batch:
                self.seconds.append((time.perf_counter() - self.began_s) / self.steps)
                self.processor_s.append((time.process_time() - self.processor_began_s) / self.steps)
            self.turns.next_turn(self.mine)
            self.began_s, self.processor_began_s = time.perf_counter(), time.process_time()

    def on_train_end(self, logs: Any = None) -> None:
        with self.turns.changed:  # the other one continues alone
            self.turns.now = 1 - self.mine
            self.turns.changed.notify_all()
            self.turns.next_turn = lambda mine: None  # type: ignore[method-assign]


def steady_state(kind: Kind, turns: int) -> list[TakesTurns]:
    """Times turns without and with the capture. The first epoch is left out."""
    shared = Turns(turns)
    steps = kind.turn_steps * turns
    takers = [TakesTurns(shared, mine, kind.turn_steps) for mine in (0, 1)]
    with tempfile.TemporaryDirectory() as folder:
        capture = StallCallback(folder)

        def train(mine: int) -> None:
            callbacks = [takers[mine]] if mine == 0 else [capture, takers[mine]]
            model, data = kind.model(), kind.data()
            model.fit(data, steps_per_epoch=steps, epochs=2, verbose=0, callbacks=callbacks)

        threads = [threading.Thread(target=train, args=(mine,)) for mine in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _finish(folder)
    for taker in takers:
        del taker.seconds[: -(turns - 1)], taker.processor_s[: -(turns - 1)]
    return takers


PARTS = ("in all", "first step", "steps 2 to 20", "later steps")
FEW_STEPS = 20


class Clock(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """The last callback. What follows is not training: TensorFlow takes its iterator down, and
    sometimes waits until that is five seconds old, with or without a capture."""

    def __init__(self) -> None:
        super().__init__()
        self.at_s = [time.perf_counter()]

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch in (1, FEW_STEPS):
            self.at_s.append(time.perf_counter())

    def on_train_end(self, logs: Any = None) -> None:
        self.at_s.append(time.perf_counter())

    def parts_s(self) -> list[float]:
        began_s, *ends_s = self.at_s
        parts = [end - begin for begin, end in pairwise(self.at_s)]
        return [ends_s[-1] - began_s, *parts]


def first_epoch(kind: Kind, folder: str | None) -> list[float]:
    """Seconds to train a new model for one epoch, in all and in parts."""
    model, data = kind.model(), kind.data()
    gc.collect()  # of all TensorFlow, it takes 0.1 to 0.3 s, and would fall to whoever comes first
    clock = Clock()
    callbacks = [clock] if folder is None else [StallCallback(folder, report=False), clock]
    model.fit(data, steps_per_epoch=kind.epoch_steps, verbose=0, callbacks=callbacks)
    if folder is not None:
        _finish(folder)
    return clock.parts_s()


def _difference(plain_s: Sequence[float], captured_s: Sequence[float]) -> dict[str, Any]:
    """The median of the differences by round, and the range that it is likely in."""
    each_s = [b - a for a, b in zip(plain_s, captured_s, strict=True)]
    again = sorted(
        statistics.median(random.choices(each_s, k=len(each_s))) for _ in range(REPETITIONS)
    )
    usual_s = statistics.median(plain_s)
    low, high = again[REPETITIONS // 20], again[-REPETITIONS // 20]
    return {
        "ms": round(1e3 * usual_s, 1),
        "more_ms": round(1e3 * statistics.median(each_s), 1),
        "more_ms_range": [round(1e3 * low, 1), round(1e3 * high, 1)],
        "percent": round(100 * statistics.median(each_s) / usual_s, 1),
    }


def _finish(folder: str) -> None:
    guard(folder).on_end()


def _profiled(folder: str) -> tuple[int, float]:
    files = list(Path(folder).glob("plugins/profile/*/*.xplane.pb"))
    return len(files), sum(file.stat().st_size for file in files) / 1e6


def compare(name: str, kind: Kind, rounds: int, turns: int) -> dict[str, Any]:
    without, with_it = steady_state(kind, turns)
    ratios = [b / a for a, b in zip(without.seconds, with_it.seconds, strict=False)]
    processor = [b / a for a, b in zip(without.processor_s, with_it.processor_s, strict=False)]
    plain_s: list[list[float]] = []
    captured_s: list[list[float]] = []
    sessions: list[tuple[int, float]] = []
    for number in range(rounds + 1):  # the first round warms the process up
        for captured in random.sample((False, True), 2):
            with tempfile.TemporaryDirectory() as folder:
                seconds = first_epoch(kind, folder if captured else None)
                if captured:
                    sessions.append(_profiled(folder))
            if number:
                (captured_s if captured else plain_s).append(seconds)
    return {
        "model": name,
        "step_ms": round(1e3 * statistics.median(without.seconds), 3),
        "step_ms_captured": round(1e3 * statistics.median(with_it.seconds), 3),
        "steady_state_percent": round(100 * (statistics.median(ratios) - 1), 2),
        "steady_state_quartiles": [round(100 * (q - 1), 2) for q in statistics.quantiles(ratios)],
        "steady_state_processor_percent": round(100 * (statistics.median(processor) - 1), 2),
        "steady_state_processor_quartiles": [
            round(100 * (q - 1), 2) for q in statistics.quantiles(processor)
        ],
        "first_epoch": {
            part: _difference(plain, captured)
            for part, plain, captured in zip(
                PARTS, zip(*plain_s, strict=True), zip(*captured_s, strict=True), strict=True
            )
        },
        "windows": statistics.median(count for count, _ in sessions),
        "megabytes": round(statistics.median(size for _, size in sessions), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=25, help="first epochs each way")
    parser.add_argument("--turns", type=int, default=40, help="turns in the steady state")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = [compare(name, KINDS[name], options.rounds, options.turns) for name in options.models]
    text = json.dumps({"tensorflow": tf.__version__, "results": results}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
