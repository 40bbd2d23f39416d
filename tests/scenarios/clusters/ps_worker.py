"""A task of a job with a ParameterServerStrategy: ps_worker.py JOB TYPE INDEX FOLDER.

The functions of a coordinator run on all workers alike, and contain no Python there. What makes one
of them slow is in files in its own folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops.testing import sleep

from tb_stall_plugin import watch
from tests.scenarios.clusters.plans import JOBS, Job, WorkerPlan
from tests.scenarios.clusters.worker import BATCH, HANG_AFTER_S, Diary, computed_for
from tests.scenarios.workloads import CLASSES, FEATURES

SLOW_STEP, SLOW_INPUT = "slow_step_s.txt", "slow_input_s.txt"
USUAL_S = 0.02  # how long a step computes on every worker
ROUND = 4  # steps that are scheduled before the coordinator waits for all of them


def serve(job: Job, kind: str, index: int, folder: Path) -> None:
    own = folder / f"{kind}-{index}"
    own.mkdir()
    plan = job.plans.get(index, WorkerPlan()) if kind == "worker" else WorkerPlan()
    for name, slow_s in ((SLOW_STEP, plan.compute_s), (SLOW_INPUT, plan.input_s)):
        (own / name).write_text(str(max(slow_s.values(), default=0.0)))
    os.chdir(own)
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()
    tf.distribute.Server(cluster, job_name=kind, task_index=index).join()


def dataset() -> tf.data.Dataset:
    """On each worker: how long each batch took. Nothing is made ahead: what the input takes, the
    step waits for."""
    slow_s = seconds_in(SLOW_INPUT)
    asleep_us = tf.cast(1e6 * slow_s, tf.int64)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    batches = tf.data.Dataset.from_tensors(slow_s).repeat()
    return batches.apply(sleep(asleep_us)).with_options(options)


def seconds_in(file: str) -> Any:
    """Read in the graph: each worker has its own."""
    return tf.strings.to_number(tf.io.read_file(file), tf.float64)


def coordinate(job: Job, folder: Path) -> None:
    diary = Diary(folder / "diary-chief.txt")
    with watch(folder / "logs", hang_after_s=HANG_AFTER_S) as watched:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            weights = tf.Variable(tf.zeros((FEATURES, CLASSES)))

        @tf.function(autograph=False)
        def step(batches: Any) -> Any:
            began_s = tf.timestamp()
            slow_input_s = next(batches)  # late: input
            slow_step_s = seconds_in(SLOW_STEP)
            slow_s = slow_input_s + slow_step_s
            with tf.control_dependencies([slow_input_s]):
                computed_s = computed_for(USUAL_S + slow_step_s)
            with tf.control_dependencies([computed_s]):
                x = tf.random.stateless_normal((BATCH, FEATURES), seed=(1, 2))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - 1.0))
            change = 0.01 * tape.gradient(loss, weights)
            updated = weights.assign_sub(change, read_value=False)  # on the parameter server
            with tf.control_dependencies([loss, updated]):
                return slow_s, began_s, tf.timestamp()

        batches = iter(coordinator.create_per_worker_dataset(dataset))
        watched.epoch()
        for number in range(job.steps):
            scheduled = [coordinator.schedule(step, (batches,)) for _ in range(ROUND)]
            coordinator.join()
            for ran in scheduled:
                slow_s, began_s, ended_s = (float(value) for value in ran.fetch())
                what = f"round {number} {'slow' if slow_s else 'usual'}"
                diary.write(what, round(1e9 * began_s), round(1e9 * ended_s))
            watched.step()
    os._exit(0)  # the strategy waits for its servers, which never end


def main(job_name: str, kind: str, index: int, folder: Path) -> None:
    job = next(job for job in JOBS if job.name == job_name)
    if kind == "chief":
        coordinate(job, folder)
    else:
        serve(job, kind, index, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
