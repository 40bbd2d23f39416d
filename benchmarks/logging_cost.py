"""What logging and capturing cost a first epoch, and how much of that the analyzer recognizes.

For a tiny, a small and a medium model, each way of logging takes turns with the bare training:

    bare             nothing is logged
    epoch            TensorFlow's profiler, and Keras' TensorBoard callback as it comes
    batch            TensorFlow's profiler, and scalars of every batch (update_freq="batch")
    capture          StallCallback

*Cost* is the median epoch less the median bare one. *Recognized* is what the report calls
`profiler`, in the median.

    python benchmarks/logging_cost.py [--models tiny small medium] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf
from capture import KINDS, Kind  # beside this file

from stall_analyzer import analyze
from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.process.guard import guard

keras = tf.keras
BARE = "bare"
PS_PER_S = 1e12


class Begin(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """The first callback."""

    at_s = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.at_s = time.perf_counter()


class End(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """The last callback."""

    at_s = 0.0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.at_s = time.perf_counter()


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


WAYS = {BARE: _nothing, "epoch": _by_epoch, "batch": _by_batch, "capture": _capture}


@dataclass
class Runs:
    """Of one way of logging."""

    seconds: list[float]
    recognized: list[float]


def first_epoch(kind: Kind, way: str, folder: str) -> float:
    """Seconds of the first epoch of a new model."""
    model, data = kind.model(), kind.data()
    begin, end = Begin(), End()
    with WAYS[way](folder) as callbacks:
        model.fit(
            data, steps_per_epoch=kind.epoch_steps, verbose=0, callbacks=[begin, *callbacks, end]
        )
    return end.at_s - begin.at_s


def recognized(folder: str) -> float:
    (run,) = analyze(folder).document["runs"]
    return run["buckets_ps"]["profiler"] / PS_PER_S


def compare(name: str, kind: Kind, rounds: int) -> list[dict[str, Any]]:
    runs = {way: Runs([], []) for way in WAYS}
    with tempfile.TemporaryDirectory() as warm_up:
        first_epoch(kind, "capture", warm_up)  # the first of a process takes longer
    for _ in range(rounds):
        for way, mine in runs.items():
            with tempfile.TemporaryDirectory() as folder:
                mine.seconds.append(first_epoch(kind, way, folder))
                if way != BARE:
                    mine.recognized.append(recognized(folder))
    bare_s = statistics.median(runs.pop(BARE).seconds)
    return [_row(name, way, bare_s, mine) for way, mine in runs.items()]


def _row(name: str, way: str, bare_s: float, runs: Runs) -> dict[str, Any]:
    cost_s, ours_s = statistics.median(runs.seconds) - bare_s, statistics.median(runs.recognized)
    return {
        "model": name,
        "way": way,
        "bare_s": round(bare_s, 3),
        "cost_s": round(cost_s, 3),
        "recognized_s": round(ours_s, 3),
        "recognized_share": round(ours_s / cost_s, 2) if cost_s > 0 else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=5, help="first epochs of each kind")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = [row for name in options.models for row in compare(name, KINDS[name], options.rounds)]
    text = json.dumps({"tensorflow": tf.__version__, "results": results}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
