"""Real trainings that hang, each as its user would have written it.

python -m tests.scenarios.hangs.programs NAME LOGDIR
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

import tb_stall_plugin as stall
from tb_stall_plugin import StallCallback
from tests.scenarios.faults import cluster
from tests.scenarios.runner import free_addresses, tf_config
from tests.scenarios.workloads import arrays, batches, dense_model, signature, training_step

HANG_AFTER_S = 8.0
GOOD_STEPS = 20
SLOW_STEP_S = 12.0
SLOW_COMPUTE_S = 20.0  # on a machine as busy as it is now: it may become quicker


def generator_blocks(logdir: str) -> None:
    def read_from_a_dead_source() -> Iterator[Any]:
        for _ in range(GOOD_STEPS):
            yield arrays(64)
        threading.Event().wait()

    fit_from(read_from_a_dead_source, logdir)


def fit_from(read: Callable[[], Iterator[Any]], logdir: str) -> None:
    data = tf.data.Dataset.from_generator(read, output_signature=signature(batch=64))
    fit(logdir, data)


def fit(logdir: str, data: tf.data.Dataset, *callbacks: keras.callbacks.Callback) -> None:
    capture = StallCallback(logdir, hang_after_s=HANG_AFTER_S)
    dense_model().fit(data, verbose=0, callbacks=[capture, *callbacks])


class SaveMetrics(keras.callbacks.Callback):
    """Shares its numbers with a thread that writes them. Each holds the lock the other wants."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.file = threading.Lock(), threading.Lock()
        self.go = threading.Event()
        threading.Thread(target=self.write, name="metrics-writer", daemon=True).start()

    def write(self) -> None:
        self.go.wait()
        with self.file:
            time.sleep(0.5)
            with self.numbers:
                pass

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == GOOD_STEPS:
            with self.numbers:
                self.go.set()
                time.sleep(0.5)
                with self.file:
                    pass


def callback_deadlocks(logdir: str) -> None:
    fit(logdir, batches(200), SaveMetrics())


def queue_never_fills(logdir: str) -> None:
    x, y = arrays(64)
    queue = tf.queue.FIFOQueue(4, [tf.float32, tf.int32], [x.shape, y.shape])

    def produce() -> None:
        for _ in range(GOOD_STEPS):
            queue.enqueue((x, y))

    threading.Thread(target=produce, name="producer", daemon=True).start()
    step = tf.function(training_step(dense_model()), autograph=False)
    with stall.watch(logdir, hang_after_s=HANG_AFTER_S) as watched:
        while True:
            watched.step(loss=step(*queue.dequeue()))


# ---------------------------------------------------------------- two workers


def peer_never_starts(logdir: str) -> None:
    os.environ.update(tf_config(free_addresses(2), index=0))
    tf.distribute.MultiWorkerMirroredStrategy()


def peer_hangs(logdir: str) -> None:
    train_with_peer("peer_that_hangs", logdir)


def peer_stops(logdir: str) -> None:
    train_with_peer("peer_that_stops", logdir)


def peer_that_hangs(logdir: str) -> None:
    lock = threading.Lock()
    lock.acquire()
    train_as_worker(logdir, then=lock.acquire)


def peer_that_stops(logdir: str) -> None:
    train_as_worker(logdir, then=lambda: os.kill(os.getpid(), signal.SIGSTOP))


def train_with_peer(peer: str, logdir: str) -> None:
    workers = free_addresses(2)
    # In the same process group: whoever ends the job ends both.
    subprocess.Popen(
        [sys.executable, "-m", "tests.scenarios.hangs.programs", peer, logdir],
        env={**os.environ, **tf_config(workers, index=1)},
    )
    os.environ.update(tf_config(workers, index=0))
    train_as_worker(logdir)


def train_as_worker(logdir: str, then: Callable[[], object] = lambda: None) -> None:
    """`then` comes after the good steps."""
    step = cluster.training_step(tf.distribute.MultiWorkerMirroredStrategy())
    x, y = (tf.constant(part) for part in arrays(256))
    with stall.watch(logdir, hang_after_s=HANG_AFTER_S) as watched:
        for number in itertools.count(1):
            watched.step(loss=step(x, y))
            if number == GOOD_STEPS:
                then()


# ---------------------------------------------------------------- slow, not stuck


def slow_compute(logdir: str) -> None:
    square = tf.random.normal((512, 512))

    @tf.function
    def multiply(times: Any) -> Any:
        result = square
        for _ in tf.range(times):
            result = tf.linalg.l2_normalize(result @ square)
        return tf.reduce_sum(result)

    multiply(tf.constant(10))
    begin = time.perf_counter()
    multiply(tf.constant(1000))
    times = tf.constant(int(1000 * SLOW_COMPUTE_S / (time.perf_counter() - begin)))
    with stall.watch(logdir, hang_after_s=HANG_AFTER_S) as watched:
        while True:
            watched.step(loss=float(multiply(times)))


def slow_input(logdir: str) -> None:
    def read_slowly() -> Iterator[Any]:
        while True:
            time.sleep(SLOW_STEP_S)
            yield arrays(64)

    fit_from(read_slowly, logdir)


if __name__ == "__main__":
    name, folder = sys.argv[1:]
    globals()[name](folder)
