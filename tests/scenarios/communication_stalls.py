"""Two workers on this machine; the recorded one waits for the other."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.scenarios.instruments import Instruments, StampLog
from tests.scenarios.runner import free_addresses, tf_config
from tests.scenarios.truth import Coat, Interval
from tests.scenarios.workloads import all_reduce, arrays, replica_step

STEPS = 40
PATIENCE_S = 120


def x_straggler(it: Instruments) -> None:
    """The other worker sleeps 50 ms before each step."""
    _chief(it, peer_sleeps=dict.fromkeys(range(STEPS), 0.05))


def x_straggler_twice(it: Instruments) -> None:
    """The other worker sleeps for most of a second before two of the steps."""
    _chief(it, peer_sleeps={15: 0.9, 30: 0.7})


def two_recorded_workers(it: Instruments, peer_sleeps: dict[int, float], steps: int) -> Path:
    """Both profiled at the same time; gives the log directory of the other one."""
    peer_logs = it.logdir.parent / "peer"
    _chief(it, peer_sleeps, steps, peer_logs)
    return peer_logs


def _chief(
    it: Instruments,
    peer_sleeps: dict[int, float],
    steps: int = STEPS,
    peer_logs: Path | None = None,
) -> None:
    workers = free_addresses(2)
    begun = it.logdir.parent / "begun"  # a file: the peer profiles only what the chief does too
    job = [
        json.dumps(peer_sleeps),
        str(steps),
        *([str(peer_logs), str(begun)] if peer_logs else []),
    ]
    peer = subprocess.Popen(
        [sys.executable, "-m", "tests.scenarios.communication_stalls", *job],
        env={**os.environ, **tf_config(workers, index=1)},
    )
    os.environ.update(tf_config(workers, index=0))
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    asked, answered = StampLog(), StampLog()
    sum_up = partial(_summed_as_one, clocks=(asked, answered))
    step = it.stamped_step(_training_step(strategy, sum_up))
    step = it.timed(tf.function(step, autograph=False))
    x, y = (tf.constant(part) for part in arrays(256))
    with it.profile(), it.epoch():
        begun.touch()
        for number in range(steps):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(x, y)
    for begin, end in zip(asked.times_ns(), answered.times_ns(), strict=True):
        it.knowledge.coats.append(Coat("communication", Interval(begin, end)))
    it.how["communication"] = "timestamps in the graph around the collective"
    peer.wait(timeout=PATIENCE_S)


def _training_step(strategy: tf.distribute.Strategy, sum_up: Callable[[Any], Any]) -> Any:
    step = replica_step(strategy, units=512, sum_up=sum_up)

    def train_step(x: Any, y: Any) -> Any:
        return strategy.run(step, args=(x, y))

    return train_step


def _summed_as_one(gradients: Sequence[Any], clocks: Sequence[StampLog] = ()) -> list[Any]:
    """One collective for all of them; with two clocks, the times around it are noted."""
    flat = tf.concat([tf.reshape(g, [-1]) for g in gradients], axis=0)
    with tf.control_dependencies([clock.stamp(after=[flat]) for clock in clocks[:1]]):
        summed = all_reduce(tf.identity(flat))
    with tf.control_dependencies([clock.stamp(after=[summed]) for clock in clocks[1:]]):
        parts = tf.split(tf.identity(summed), [math.prod(g.shape) for g in gradients])
    return [tf.reshape(part, g.shape) for part, g in zip(parts, gradients, strict=True)]


def _peer(sleeps: dict[str, float], steps: int, logs: str = "", begun: str = "") -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    step = tf.function(_training_step(strategy, _summed_as_one), autograph=False)
    x, y = (tf.constant(part) for part in arrays(256))
    with _profiled_from(Path(begun), logs) if logs else contextlib.nullcontext():
        for number in range(steps):
            time.sleep(sleeps.get(str(number), 0.0))  # JSON has text for keys
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(x, y)


@contextlib.contextmanager
def _profiled_from(begun: Path, logs: str) -> Iterator[None]:
    until = time.monotonic() + PATIENCE_S
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.005)
    with tf.profiler.experimental.Profile(logs):
        yield


if __name__ == "__main__":
    pauses, count, *recorded = sys.argv[1:]
    _peer(json.loads(pauses), int(count), *recorded)
