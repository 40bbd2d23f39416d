"""A worker that trains with `fit` of Keras 2, whose strategies include several workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from tb_stall_plugin import StallCallback
from tests.scenarios.clusters.exchanges import Exchanges
from tests.scenarios.clusters.plans import Job, WorkerPlan
from tests.scenarios.clusters.worker import BATCH, HANG_AFTER_S, Diary
from tests.scenarios.workloads import CLASSES, FEATURES, arrays, signature


def fit(job: Job, plan: WorkerPlan, diary: Diary, folder: Path) -> None:
    with diary.entry("whole"):
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        exchanges = Exchanges()
        with strategy.scope():
            model = Model(plan, diary)
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile("sgd", loss)
        data = strategy.distribute_datasets_from_function(lambda _: pipeline(job, plan, diary))
        capture = StallCallback(folder / "logs", hang_after_s=HANG_AFTER_S)
        callbacks = [Report(plan, diary), Notes(exchanges, diary), capture]
        model.fit(data, steps_per_epoch=job.steps, epochs=1, verbose=0, callbacks=callbacks)


def pipeline(job: Job, plan: WorkerPlan, diary: Diary) -> tf.data.Dataset:
    def read() -> Iterator[Any]:
        x, y = arrays(BATCH)
        for number in range(job.steps):
            if number in plan.input_s:
                with diary.entry("input"):
                    time.sleep(plan.input_s[number])  # late: input
            yield x, y

    # Nothing is made ahead: what the input takes, the step waits for.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.from_generator(read, output_signature=signature()).with_options(options)


class Model(tf.keras.Sequential):
    """Its step is slow to trace, but only if it is traced again."""

    def __init__(self, plan: WorkerPlan, diary: Diary) -> None:
        super().__init__(
            [
                tf.keras.layers.InputLayer((FEATURES,)),
                tf.keras.layers.Dense(128, activation="relu"),
                tf.keras.layers.Dense(CLASSES),
            ]
        )
        self._plan, self._diary = plan, diary
        self.traced_again_s = 0.0

    def train_step(self, data: Any) -> Any:
        if self.traced_again_s:
            with self._diary.entry("traced"):
                time.sleep(self.traced_again_s)  # late: compile
        return super().train_step(data)


class Report(tf.keras.callbacks.Callback):
    """What one worker does for all, while they wait."""

    def __init__(self, plan: WorkerPlan, diary: Diary) -> None:
        super().__init__()
        self._plan, self._diary = plan, diary

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch in self._plan.callback_s:
            with self._diary.entry("callback"):
                time.sleep(self._plan.callback_s[batch])  # late: callback
        if batch in self._plan.trace_s:
            self.model.traced_again_s = self._plan.trace_s[batch]
            self.model.make_train_function(force=True)


class Notes(tf.keras.callbacks.Callback):
    def __init__(self, exchanges: Exchanges, diary: Diary) -> None:
        super().__init__()
        self._exchanges, self._diary = exchanges, diary

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._exchanges.write(self._diary)
