"""What logging and capturing cost a first epoch, and how much of that the analyzer recognizes.

Trains a tiny, a small and a medium model. Each way of logging runs between two bare runs, in a
different order each round, and each round in its own process:

    bare             nothing is logged
    epoch            TensorFlow's profiler, and Keras's TensorBoard callback with its defaults
    batch            TensorFlow's profiler, and scalars of every batch (update_freq="batch")
    capture          StallCallback

A machine may be a fifth slower for some seconds, and one process may be faster than the next by as
much as logging costs. So epochs are short, and *cost* is the median of how much longer each took
than the mean of the two bare ones around it; `cpu_s` is the same in processor time. *Recognized* is
the median of what the report calls `profiler`; for an epoch that was not traced as a whole, of its
estimate.

    python benchmarks/logging_cost.py [--models tiny small medium] [--rounds N] [--json FILE]

`--folder` keeps the logs, `--only-score` reads those of an earlier run, and `--under` names a
command that starts each round, such as one that waits until the machine is quiet.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from capture import KINDS, Kind  # next to this file

from stall_analyzer import analyze
from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.process.guard import guard

keras = tf.keras
BARE = "bare"
PS_PER_S = 1e12
STEPS = {"tiny": 1500, "small": 200, "medium": 50}
WARM_UP_STEPS = 20  # the first training in a process takes longer, however it is logged
RESULT = "cost.json"  # next to the logs of a run
Seconds = dict[str, float]  # by clock: "s" is wall time, "cpu_s" is processor time


def _clocks() -> Seconds:
    return {"s": time.perf_counter(), "cpu_s": time.process_time()}


class Begin(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """The first callback."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.at = _clocks()


class End(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """The last callback."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.at = _clocks()


@contextlib.contextmanager
def _nothing(folder: str) -> Iterator[list[Any]]:
    yield []


@contextlib.contextmanager
def _capture(folder: str) -> Iterator[list[Any]]:
    yield [StallCallback(folder)]
    guard(folder).on_end()


@contextlib.contextmanager
def _by_epoch(folder: str) -> Iterator[list[Any]]:
    with tf.profiler.experimental.Profile(folder):
        yield [keras.callbacks.TensorBoard(folder, profile_batch=0)]


@contextlib.contextmanager
def _by_batch(folder: str) -> Iterator[list[Any]]:
    with tf.profiler.experimental.Profile(folder):
        yield [keras.callbacks.TensorBoard(folder, update_freq="batch", profile_batch=0)]


WAYS = {"epoch": _by_epoch, "batch": _by_batch, "capture": _capture, BARE: _nothing}
LOGGED = tuple(WAYS)[:-1]


def first_epoch(kind: Kind, way: str, folder: str) -> Seconds:
    """Times the first epoch of a new model."""
    model, data = kind.model(), kind.data()
    begin, end = Begin(), End()
    gc.collect()
    with WAYS[way](folder) as callbacks:
        model.fit(
            data, steps_per_epoch=kind.epoch_steps, verbose=0, callbacks=[begin, *callbacks, end]
        )
    return {clock: end.at[clock] - begin.at[clock] for clock in begin.at}


def train(name: str, number: int, folder: Path) -> None:
    """Runs one round in this process, after a warm-up without logging."""
    kind = replace(KINDS[name], epoch_steps=STEPS[name])
    first_epoch(replace(kind, epoch_steps=WARM_UP_STEPS), BARE, "")
    turn = number % len(LOGGED)
    before = first_epoch(kind, BARE, "")
    for way in LOGGED[turn:] + LOGGED[:turn]:
        place = folder / name / way / str(number)
        logged = first_epoch(kind, way, str(place / "logs"))
        after = first_epoch(kind, BARE, "")
        bare = {clock: (before[clock] + after[clock]) / 2 for clock in before}
        place.mkdir(parents=True, exist_ok=True)
        (place / RESULT).write_text(json.dumps({"bare": bare, "logged": logged}))
        before = after


def measure(models: Sequence[str], rounds: int, under: Sequence[str], folder: Path) -> None:
    for number in range(rounds):
        for name in models:
            command = [sys.executable, __file__, "--train", name, str(number), str(folder)]
            subprocess.run([*under, *command], check=True)


def recognized(logs: Path) -> float:
    (run,) = analyze(str(logs)).document["runs"]
    return float((run["estimate"] or run)["buckets_ps"]["profiler"] / PS_PER_S)


def compare(folder: Path, way: str) -> dict[str, Any]:
    """Compares one way of logging with bare runs, for one model."""
    files = sorted((folder / way).glob(f"*/{RESULT}"))
    rounds = [json.loads(file.read_text()) for file in files]
    costs = [one["logged"]["s"] - one["bare"]["s"] for one in rounds]
    ours = [recognized(file.parent / "logs") for file in files]
    cost_s, ours_s = statistics.median(costs), statistics.median(ours)
    cpu_s = statistics.median(one["logged"]["cpu_s"] - one["bare"]["cpu_s"] for one in rounds)
    return {
        "model": folder.name,
        "way": way,
        "bare_s": [round(one["bare"]["s"], 3) for one in rounds],
        "costs_s": [round(cost, 3) for cost in costs],
        "recognized_each_s": [round(each, 3) for each in ours],
        "cost_s": round(cost_s, 3),
        "cost_cpu_s": round(cpu_s, 3),
        "recognized_s": round(ours_s, 3),
        "recognized_share": round(ours_s / cost_s, 2) if cost_s > 0 else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=5, help="first epochs of each kind")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only-score", action="store_true")
    parser.add_argument("--under", nargs="+", default=[], help="command that starts a round")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--train", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        name, number, place = options.train
        train(name, int(number), Path(place))
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="logging-cost-"))
    if not options.only_score:
        measure(options.models, options.rounds, options.under, folder)
    results = [compare(folder / name, way) for name in options.models for way in LOGGED]
    text = json.dumps({"tensorflow": tf.__version__, "results": results}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
