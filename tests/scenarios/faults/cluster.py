"""Programs on several workers, and runs that never finished an epoch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tests.scenarios.faults.base import Fault, fit, forms
from tests.scenarios.runner import free_addresses, tf_config
from tests.scenarios.workloads import arrays, batches, dense_model, replica_step

STEPS = 40


def training_step(strategy: tf.distribute.Strategy) -> Any:
    step = replica_step(strategy, units=512)
    return tf.function(lambda x, y: strategy.run(step, args=(x, y)), autograph=False)


def work(logdir: str, pause_s: float, barrier: Path) -> None:
    """One worker: the same steps as every other, after its own pause."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    step = training_step(strategy)
    x, y = (tf.constant(part) for part in arrays(256))
    with tf.profiler.experimental.Profile(logdir):
        for number in range(STEPS):
            time.sleep(pause_s)
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(x, y)
    barrier.touch()  # stopping a profiler takes a while; nobody leaves before all are done


@forms
def two_workers(logdir: str, peer_pause_s: float, peer_is_recorded: bool) -> None:
    workers = free_addresses(2)
    with tempfile.TemporaryDirectory() as scratch:
        peer_logs = Path(scratch) / "peer"
        barriers = [Path(scratch) / name for name in ("chief_done", "peer_done")]
        arguments = [str(peer_logs), str(peer_pause_s), str(barriers[1]), str(barriers[0])]
        peer = subprocess.Popen(
            [sys.executable, "-m", "tests.scenarios.faults.cluster", *arguments],
            env={**os.environ, **tf_config(workers, index=1)},
        )
        os.environ.update(tf_config(workers, index=0))
        work(logdir, 0.0, barriers[0])
        peer.wait(timeout=120)
        if peer_is_recorded:
            bring_together(Path(logdir), peer_logs)


def bring_together(logdir: Path, peer_logs: Path) -> None:
    """Both workers run on one machine under one name; in a cluster each writes its own file."""
    (session,) = (logdir / "plugins" / "profile").iterdir()
    (theirs,) = peer_logs.glob("plugins/profile/*/*.xplane.pb")
    shutil.copy(theirs, session / "worker1.xplane.pb")


class Interrupt(keras.callbacks.Callback):
    """The job ends in the middle of its first epoch."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 40:
            raise KeyboardInterrupt


def never_finishes(logdir: str) -> None:
    board = keras.callbacks.TensorBoard(logdir, update_freq="batch", profile_batch=0)
    model = dense_model()
    try:
        model.fit(batches(400), verbose=0, callbacks=[board, Interrupt()])
    except KeyboardInterrupt:
        board.on_train_end()


def finishes(logdir: str) -> None:
    fit(logdir, dense_model(), batches(60))


FAULTS = (
    Fault(
        "collective_wait", "ST501", "communication",
        two_workers(peer_pause_s=0.05, peer_is_recorded=False),
        two_workers(peer_pause_s=0.0, peer_is_recorded=False),
        "this worker waits for one that was not recorded",
    ),
    Fault(
        "straggler", "ST502", "host",  # of the late worker
        two_workers(peer_pause_s=0.05, peer_is_recorded=True),
        two_workers(peer_pause_s=0.0, peer_is_recorded=True),
        "one of two recorded workers pauses 50 ms before each step",
    ),
    Fault(
        "first_epoch_never_finished", "ST510", "unknown", never_finishes, finishes,
        "the job ends in the middle of its first epoch",
    ),
)  # fmt: skip


if __name__ == "__main__":
    logs, pause_s, mine, theirs = sys.argv[1:]
    work(logs, float(pause_s), Path(mine))
    for _ in range(600):
        if Path(theirs).exists():
            break
        time.sleep(0.1)
