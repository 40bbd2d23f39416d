"""Programs whose steps run and teach the model nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.host_stalls import every_batch
from tests.scenarios.instruments import Instruments
from tests.scenarios.workloads import FEATURES, arrays, batches, dense_model, signature


def fit_with_one_nan(
    it: Instruments, model: keras.Model, steps: int, bad_step: int, callbacks: Sequence[Any] = ()
) -> None:
    x, y = arrays(1024)
    poisoned = x.copy()
    poisoned[0, 0] = np.nan

    def read() -> Iterator[tuple[Any, Any]]:
        for step in range(steps):
            yield (poisoned if step == bad_step else x), y

    it.knowledge.wasted_steps = set(range(bad_step, steps))
    it.how["numerics"] = "compute of every step from the poisoned batch on"
    data = tf.data.Dataset.from_generator(read, output_signature=signature()).prefetch(4)
    it.fit(model, data, callbacks, epochs=2)


def n_nan(it: Instruments) -> None:
    # Not relu: max(NaN, 0) is 0 on CPU, and then the loss never shows what the weights became.
    model = dense_model(layers=3, units=768, activation="tanh")
    fit_with_one_nan(it, model, steps=40, bad_step=12)


def n_explodes(it: Instruments) -> None:
    """A learning rate so high that the loss is not finite after a few steps."""
    steps = 40
    losses: list[float] = []
    model = dense_model(layers=3, units=768, optimizer=keras.optimizers.SGD(1e4))
    note = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(logs["loss"])
    )
    it.fit(model, batches(steps, batch=1024), [note], epochs=2)
    first = next(i for i, loss in enumerate(losses) if not np.isfinite(loss))
    it.knowledge.wasted_steps = set(range(first, steps))
    it.how["numerics"] = "compute of every step from the first loss that is not finite"
    it.notes.append(f"first loss that is not finite: step {first}")


def n_loss_scale(it: Instruments) -> None:
    """Loss scaling starts far too high: each overflow skips an update and halves the scale."""
    steps = 50
    inner = keras.optimizers.SGD(1e-9)
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**100)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.layers.Input((FEATURES,))]
        + [keras.layers.Dense(768, activation="relu") for _ in range(3)]
        + [keras.layers.Dense(1)]
    )
    model.compile(optimizer, "mse")
    x, _ = arrays(1024)
    y = np.full((1024, 1), 1e12, "float32")
    data = tf.data.Dataset.from_tensors((x, y)).cache().repeat(steps).prefetch(2)
    updates: list[int] = []
    note = every_batch(lambda _: updates.append(int(inner.iterations.numpy())))
    it.fit(model, data, [note])
    before = [0, *updates[:-1]]
    skipped = {step for step in range(steps) if updates[step] == before[step]}
    it.knowledge.wasted_steps = skipped
    it.how["numerics"] = "compute of the steps after which the optimizer had counted no update"
    it.notes.append(f"{len(skipped)} of {steps} updates skipped")
