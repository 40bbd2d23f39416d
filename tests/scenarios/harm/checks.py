"""Fits that are tried on one batch before they begin, and scripts that others start for us."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.small import BATCH, FEATURES, data, dataset, fit, keras, model, tf

TOLD = ("Checks before the first epoch",)
CHECKED = (
    "passed ",
    "FAILED ",
    "not checked ",
    "this training",
    "could be checked",
    "No problem was found",
)


def stateful() -> Any:
    """With statistics, seeds and a schedule that a trial might move."""
    k = keras()
    k.utils.set_random_seed(3)
    layers = [
        k.layers.Input((FEATURES,)),
        k.layers.Dense(16),
        k.layers.BatchNormalization(),
        k.layers.GaussianNoise(0.1),
        k.layers.Dropout(0.2),
        k.layers.Dense(1),
    ]
    made = k.Sequential(layers)
    rate = k.optimizers.schedules.ExponentialDecay(0.01, 5, 0.9)
    made.compile(k.optimizers.Adam(rate, clipnorm=1.0), "mse", metrics=["mae"])
    return made


def random_numbers() -> list[Any]:
    """The next ones, of everybody who has some."""
    return [np.random.rand(3), tf().random.normal([3]), keras().random.uniform([3])]


@kind("preflight=True: arrays, shuffled, with validation", says=TOLD)
def preflight_arrays(capture: Capture) -> None:
    of = stateful()
    callbacks = capture.callbacks(preflight=True)
    fit(of, callbacks, shuffle=True, validation_data=data())
    capture.weights(of)
    capture.result([*of.optimizer.variables, *random_numbers()])


@kind("preflight=True: tf.data that shuffles, caches and draws random numbers", says=TOLD)
def preflight_dataset(capture: Capture) -> None:
    def noisy(x: Any, y: Any) -> Any:
        return x + tf().random.normal(tf().shape(x)), y

    keras().utils.set_random_seed(2)
    shuffled = dataset().shuffle(4, seed=1)
    for given in (shuffled, shuffled.cache(), dataset().map(noisy)):
        of = stateful()
        of.fit(given, epochs=2, verbose=0, callbacks=capture.callbacks(preflight=True))
        capture.weights(of)
    capture.result(random_numbers())


@kind("preflight=True: a generator, and a PyDataset with its own generator", says=TOLD)
def preflight_generators(capture: Capture) -> None:
    def batches() -> Iterator[Any]:
        draws = np.random.default_rng(2)
        while True:
            x = draws.normal(size=(BATCH, FEATURES)).astype("float32")
            yield x, x[:, :1]

    class Draws(keras().utils.PyDataset):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.draws = np.random.default_rng(2)

        def __len__(self) -> int:
            return 6

        def __getitem__(self, number: int) -> Any:
            x = self.draws.normal(size=(BATCH, FEATURES)).astype("float32")
            return x, x[:, :1]

    for given in (batches(), Draws()):
        of, callbacks = stateful(), capture.callbacks(preflight=True)
        of.fit(given, epochs=2, steps_per_epoch=6, verbose=0, callbacks=callbacks)
        capture.weights(of)
    capture.result(random_numbers())


@kind("preflight=True: a faulty model and faulty data", says=TOLD)
def preflight_finds(capture: Capture) -> None:
    x, y = data()
    for given in (x * 0, np.full_like(x, np.nan)):
        of, callbacks = model(), capture.callbacks(preflight=True)
        of.fit(given, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=callbacks)
        capture.result([np.isfinite(weight).sum() for weight in of.get_weights()])


@kind("`stall-analyze check --go-on`", through=("check", "--go-on"), says=CHECKED)
def checked_script(capture: Capture) -> None:
    of = stateful()
    fit(of, [], shuffle=True, validation_data=data())
    capture.weights(of)
    capture.result([*of.optimizer.variables, *random_numbers()])


@kind("`stall-analyze capture`", through=("capture",))
def captured_script(capture: Capture) -> None:
    for _ in range(2):
        of = stateful()
        fit(of, [], shuffle=True, validation_data=data())
        capture.weights(of)
    capture.result([*of.optimizer.variables, *random_numbers()])
