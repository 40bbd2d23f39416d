"""One worker of a job. Started by run.py: worker.py JOB INDEX FOLDER, with TF_CONFIG set.

A line that makes a worker late says so in a comment, by which the score knows it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from tb_stall_plugin import watch
from tests.scenarios.clusters.exchanges import Exchanges
from tests.scenarios.clusters.plans import JOBS, Job, WorkerPlan
from tests.scenarios.workloads import arrays, replica_step

BATCH = 64
WAIT_FOR_OTHERS_S = 40
HANG_AFTER_S = 10


class Diary:
    """What was injected when, by the clock of this process; a line is whole or not there."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def write(self, what: str, begin_ns: int, end_ns: int) -> None:
        self._file.write(f"{what}\t{begin_ns}\t{end_ns}\n")

    @contextmanager
    def entry(self, what: str) -> Iterator[None]:
        begin_ns = time.time_ns()
        try:
            yield
        finally:
            self.write(what, begin_ns, time.time_ns())


def main(job_name: str, index: int, folder: Path) -> None:
    job = next(job for job in JOBS if job.name == job_name)
    plan = job.plans.get(index, WorkerPlan())
    diary = Diary(folder / f"diary-{index}.txt")
    if job.fit:
        from tests.scenarios.clusters.fit_worker import fit  # noqa: PLC0415 (needs Keras 2)

        fit(job, plan, diary, folder)
    elif job.watched:
        train_watched(job, plan, diary, folder)
    else:
        train_profiled(job, plan, diary, folder, index)


def train_watched(job: Job, plan: WorkerPlan, diary: Diary, folder: Path) -> None:
    """With the capture, which tells of workers that end or never begin."""
    with diary.entry("whole"), watch(folder / "logs", hang_after_s=HANG_AFTER_S) as watched:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        exchanges = Exchanges()
        step = training_step(strategy, job.in_graph)
        own = pipeline(job, plan, diary)
        data = iter(
            strategy.distribute_datasets_from_function(lambda _: own) if job.in_graph else own
        )
        watched.epoch()

        def finished(loss: Any) -> None:
            exchanges.write(diary)
            watched.step(loss=loss)

        train(job, plan, diary, step, data, finished)


def train_profiled(job: Job, plan: WorkerPlan, diary: Diary, folder: Path, index: int) -> None:
    """With a profile of the whole."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    step = training_step(strategy)
    data = iter(pipeline(job, plan, diary))
    meet(folder, "ready", index, job)
    with tf.profiler.experimental.Profile(str(folder / f"worker-{index}")):
        train(job, plan, diary, step, data)
    # Stopping a profiler takes a while; nobody leaves before all are done.
    meet(folder, "done", index, job)


def train(
    job: Job,
    plan: WorkerPlan,
    diary: Diary,
    step: Any,
    data: Iterator[Any],
    finished: Callable[..., None] = lambda **_: None,
) -> None:
    for number in range(job.steps):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            if number == plan.dies_before:
                diary.write("died", time.time_ns(), time.time_ns())
                # A process that stands still answers nobody, and breaks no connection.
                os.kill(os.getpid(), signal.SIGSTOP if plan.vanishes else signal.SIGKILL)
            time.sleep(job.pace_s)
            if number in plan.python_s:
                with diary.entry("python"):
                    time.sleep(plan.python_s[number])  # late: python
            rows = BATCH - (1 + number if number in plan.trace_s else 0)
            batch = data if job.in_graph else [part[:rows] for part in next(data)]
            longer_s = tf.constant(plan.compute_s.get(number, 0.0), tf.float64)
            with diary.entry("traced call" if number in plan.trace_s else "call"):
                loss, waited_s, burnt_s = step(batch, plan.trace_s.get(number, 0.0), longer_s)
            if number in plan.compute_s:
                diary.write("compute", 0, round(1e9 * float(burnt_s)))
            if number in plan.input_s and job.in_graph:  # batches are made ahead there
                diary.write("waited", 0, round(1e9 * float(waited_s)))
        finished(loss=loss)


def pipeline(job: Job, plan: WorkerPlan, diary: Diary) -> tf.data.Dataset:
    """Batches that a Python function lets through, on this worker perhaps slowly."""

    def load(number: Any) -> Any:
        pause_s = plan.input_s.get(int(number), 0.0)
        if pause_s:
            with diary.entry("input"):
                time.sleep(pause_s)  # late: input
        return number

    x, y = (tf.constant(part) for part in arrays(BATCH))

    def batch(number: Any) -> tuple[Any, Any]:
        with tf.control_dependencies([tf.py_function(load, [number], tf.int64)]):
            return tf.identity(x), tf.identity(y)

    # Nothing is made ahead: what the input takes, the step waits for.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.range(job.steps).map(batch).with_options(options)


def training_step(strategy: tf.distribute.Strategy, in_graph: bool = False) -> Any:
    replica = replica_step(strategy, units=128)

    @tf.function(autograph=False)
    def train_step(batch: Any, slow_s: float, longer_s: Any) -> Any:
        if slow_s:
            time.sleep(slow_s)  # late: compile (in Python, so only while a new shape is traced)
        began = tf.timestamp()
        x, y = next(batch) if in_graph else batch
        with tf.control_dependencies(tf.nest.flatten((x, y), expand_composites=True)):
            waited_s = tf.timestamp() - began
        burnt_s = computed_for(longer_s)
        with tf.control_dependencies([burnt_s]):
            return strategy.run(replica, args=(x, y)), waited_s, burnt_s

    return train_step


def computed_for(seconds: Any) -> Any:
    """Computes for that long, and returns how long it really did."""
    began = tf.timestamp()
    _, ended = tf.while_loop(
        lambda values, now: now < began + seconds,
        lambda values, now: (tf.linalg.normalize(values @ values)[0], tf.timestamp()),
        (tf.eye(100), began),
    )
    return ended - began


def meet(folder: Path, what: str, index: int, job: Job) -> None:
    """Wait until all workers have come here too."""
    (folder / f"{what}-{index}").touch()
    for _ in range(WAIT_FOR_OTHERS_S * 20):
        if all((folder / f"{what}-{i}").exists() for i in range(job.workers)):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
