"""What logging and capturing cost a first epoch, and how much of that the analyzer recognizes.

For a tiny, a small and a medium model, each way of logging takes turns with the bare training, in
another order each round, and each round in a process of its own:

    bare             nothing is logged
    epoch            TensorFlow's profiler, and Keras' TensorBoard callback as it comes
    batch            TensorFlow's profiler, and scalars of every batch (update_freq="batch")
    capture          StallCallback

*Cost* is the median epoch less the median bare one. *Recognized* is what the report calls
`profiler`, in the median; of an epoch that was not traced as a whole, what it estimates.

    python benchmarks/logging_cost.py [--models tiny small medium] [--rounds N] [--json FILE]

`--folder` keeps the logs, `--only-score` reads those of an earlier run, and `--under` names a
command that starts each round, such as one that waits until the machine is quiet.
"""

from __future__ import annotations

import argparse
import contextlib
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
from capture import KINDS, Kind  # beside this file

from stall_analyzer import analyze
from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.process.guard import guard

keras = tf.keras
BARE = "bare"
PS_PER_S = 1e12
# Long enough that what logging costs is more than what two epochs differ by anyway.
STEPS = {"tiny": 3000, "small": 700, "medium": 150}
WARM_UP_STEPS = 20  # the first training of a process takes longer, whoever logs it
SECONDS = "seconds.json"  # beside the logs of a training


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


def first_epoch(kind: Kind, way: str, folder: str) -> float:
    """Seconds of the first epoch of a new model."""
    model, data = kind.model(), kind.data()
    begin, end = Begin(), End()
    with WAYS[way](folder) as callbacks:
        model.fit(
            data, steps_per_epoch=kind.epoch_steps, verbose=0, callbacks=[begin, *callbacks, end]
        )
    return end.at_s - begin.at_s


def train(name: str, number: int, folder: Path) -> None:
    """One round in this process, after a warm-up that nobody logs."""
    kind = replace(KINDS[name], epoch_steps=STEPS[name])
    first_epoch(replace(kind, epoch_steps=WARM_UP_STEPS), BARE, "")
    ways, turn = list(WAYS), number % len(WAYS)
    for way in ways[turn:] + ways[:turn]:
        place = folder / name / way / str(number)
        seconds = first_epoch(kind, way, str(place / "logs"))
        place.mkdir(parents=True, exist_ok=True)
        (place / SECONDS).write_text(json.dumps(seconds))


def measure(models: Sequence[str], rounds: int, under: Sequence[str], folder: Path) -> None:
    for number in range(rounds):
        for name in models:
            command = [sys.executable, __file__, "--train", name, str(number), str(folder)]
            subprocess.run([*under, *command], check=True)


def recognized(logs: Path) -> float:
    (run,) = analyze(str(logs)).document["runs"]
    return (run["estimate"] or run)["buckets_ps"]["profiler"] / PS_PER_S


def compare(folder: Path) -> list[dict[str, Any]]:
    """Of one model."""
    runs = {way: sorted(folder.glob(f"{way}/*/{SECONDS}")) for way in WAYS}
    seconds = {way: [json.loads(file.read_text()) for file in runs[way]] for way in runs}
    bare_s = statistics.median(seconds[BARE])
    rows = []
    for way in (way for way in WAYS if way != BARE):
        cost_s = statistics.median(seconds[way]) - bare_s
        ours_s = statistics.median(recognized(file.parent / "logs") for file in runs[way])
        rows.append(
            {
                "model": folder.name,
                "way": way,
                "rounds": len(runs[way]),
                "bare_s": [round(s, 3) for s in sorted(seconds[BARE])],
                "logged_s": [round(s, 3) for s in sorted(seconds[way])],
                "cost_s": round(cost_s, 3),
                "recognized_s": round(ours_s, 3),
                "recognized_share": round(ours_s / cost_s, 2) if cost_s > 0 else None,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=5, help="first epochs of each way")
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
    results = [row for name in options.models for row in compare(folder / name)]
    text = json.dumps({"tensorflow": tf.__version__, "results": results}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
