"""One worker of a job. Started by run.py: worker.py JOB INDEX FOLDER, with TF_CONFIG set."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.scenarios.clusters.plans import JOBS, Job, WorkerPlan
from tests.scenarios.workloads import CLASSES, FEATURES, arrays

BATCH = 64
WAIT_FOR_OTHERS_S = 40


class Diary:
    """What was injected when, by the clock of this process; a line is whole or not there."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def write(self, what: str, begin_ns: int, end_ns: int) -> None:
        self._file.write(f"{what} {begin_ns} {end_ns}\n")

    @contextmanager
    def entry(self, what: str) -> Iterator[None]:
        begin_ns = time.time_ns()
        yield
        self.write(what, begin_ns, time.time_ns())


def main(job_name: str, index: int, folder: Path) -> None:
    job = next(job for job in JOBS if job.name == job_name)
    plan = job.plans.get(index, WorkerPlan())
    diary = Diary(folder / f"diary-{index}.txt")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    step = training_step(strategy, plan, diary)
    data = iter(pipeline(job, plan, diary))
    meet(folder, "ready", index, job)
    try:
        with tf.profiler.experimental.Profile(str(folder / f"worker-{index}")):
            train(job, plan, diary, step, data)
    finally:
        # Stopping a profiler takes a while; nobody leaves before all are done.
        meet(folder, "done", index, job)


def train(job: Job, plan: WorkerPlan, diary: Diary, step: Any, data: Iterator[Any]) -> None:
    for number in range(job.steps):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            if number == plan.dies_before:
                diary.write("killed", time.time_ns(), time.time_ns())
                os.kill(os.getpid(), signal.SIGKILL)
            if number in plan.python_s:
                with diary.entry("python"):
                    time.sleep(plan.python_s[number])
            x, y = next(data)
            rows = BATCH - (1 + number if number in plan.trace_s else 0)
            step(x[:rows], y[:rows], plan.trace_s.get(number, 0.0))


def pipeline(job: Job, plan: WorkerPlan, diary: Diary) -> tf.data.Dataset:
    """Batches that a Python function lets through, on this worker perhaps slowly."""

    def load(number: Any) -> Any:
        pause_s = plan.input_s.get(int(number), 0.0)
        if pause_s:
            with diary.entry("input"):
                time.sleep(pause_s)
        return number

    x, y = (tf.constant(part) for part in arrays(BATCH))

    def batch(number: Any) -> tuple[Any, Any]:
        with tf.control_dependencies([tf.py_function(load, [number], tf.int64)]):
            return tf.identity(x), tf.identity(y)

    return tf.data.Dataset.range(job.steps).map(batch)


def training_step(strategy: tf.distribute.Strategy, plan: WorkerPlan, diary: Diary) -> Any:
    with strategy.scope():
        hidden = tf.Variable(tf.random.normal((FEATURES, 128), seed=1) * 0.05)
        output = tf.Variable(tf.random.normal((128, CLASSES), seed=1) * 0.05)

    def replica_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, hidden)), output)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, [hidden, output])
        summed = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        hidden.assign_sub(0.01 * summed[0])
        output.assign_sub(0.01 * summed[1])
        return loss

    @tf.function(autograph=False)
    def train_step(x: Any, y: Any, slow_s: float) -> Any:
        if slow_s:  # in Python, so only while the new shape is traced
            with diary.entry("trace"):
                time.sleep(slow_s)
        return strategy.run(replica_step, args=(x, y))

    return train_step


def meet(folder: Path, what: str, index: int, job: Job) -> None:
    """Wait until all workers that live have come here too."""
    (folder / f"{what}-{index}").touch()
    alive = [i for i in range(job.workers) if job.plans.get(i, WorkerPlan()).dies_before is None]
    needed = alive if what == "done" else range(job.workers)
    for _ in range(WAIT_FOR_OTHERS_S * 20):
        if all((folder / f"{what}-{i}").exists() for i in needed):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
