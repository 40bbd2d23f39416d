"""Fits in which callbacks, data or the code around do what one does not expect."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.small import BATCH, data, dataset, fit, keras, model, tf


def at_batch(number: int, action: Any) -> Any:
    """A callback that does something once, after this batch."""
    base = keras().callbacks.Callback
    done: list[int] = []

    def on_train_batch_end(self: Any, batch: int, logs: Any = None) -> None:
        if batch == number and not done:
            done.append(batch)
            action(self.model)

    return type("AtBatch", (base,), {"on_train_batch_end": on_train_batch_end})()


@kind("a subclass of the callback that swallows exceptions")
def subclassed_callback(capture: Capture) -> None:
    callbacks = capture.callbacks()
    if callbacks:
        base = type(callbacks[0])

        class Swallows(base):  # type: ignore[misc, valid-type]
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                try:
                    super().on_train_batch_end(batch, logs)
                    raise ValueError("mine")
                except ValueError:
                    pass

        callbacks = [Swallows(capture.logdir)]
    of = model()
    fit(of, callbacks)
    capture.weights(of)


@kind("a callback that replaces the model's functions")
def replaced_functions(capture: Capture) -> None:
    def replace(of: Any) -> None:
        inner = of.train_function
        of.train_function = inner

    of = model()
    fit(of, [*capture.callbacks(), at_batch(2, replace)])
    capture.weights(of)


@kind("several fits, with recompiling and freezing in between")
def several_fits(capture: Capture) -> None:
    of, callbacks = model(), capture.callbacks()
    fit(of, callbacks, epochs=1)
    of.layers[0].trainable = False
    of.compile("sgd", "mse")
    fit(of, callbacks, epochs=1)
    fit(of, capture.callbacks(), epochs=1)
    capture.weights(of)


@kind("a fit inside a fit")
def fit_inside_of_fit(capture: Capture) -> None:
    outer, inner = model(), model()
    callbacks = capture.callbacks()
    nested = at_batch(3, lambda _: fit(inner, capture.callbacks(), epochs=1))
    fit(outer, [*callbacks, nested])
    capture.weights(outer, inner)


@kind("fits in several threads")
def fits_in_threads(capture: Capture) -> None:
    models = [model() for _ in range(2)]
    threads = [
        threading.Thread(target=fit, args=(of, capture.callbacks()), kwargs={"epochs": 3})
        for of in models
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    capture.result([len(of.get_weights()) for of in models])  # dropout is drawn by both


@kind("a generator that calls TensorFlow")
def generator(capture: Capture) -> None:
    x, y = data()
    double = tf().function(lambda value: value * 2)

    def batches() -> Any:
        for at in range(0, len(x), BATCH):
            yield double(tf().constant(x[at : at + BATCH])), y[at : at + BATCH]

    of = model()
    of.fit(batches(), verbose=0, callbacks=capture.callbacks())
    capture.weights(of)


@kind("tf.data: shuffle, map, py_function, ragged, sparse, strings, windows")
def pipelines(capture: Capture) -> None:
    def batch(x: Any, y: Any) -> Any:
        rows = tf().RaggedTensor.from_tensor(x)
        sparse = tf().sparse.from_dense(x)
        told = tf().strings.as_string(x)
        added = rows.to_tensor() + tf().sparse.to_dense(sparse) + tf().strings.to_number(told)
        return {"rows": rows, "sparse": sparse, "text": told, "x": added}, y

    class Reads(keras().Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.last = keras().layers.Dense(1)

        def call(self, given: Any) -> Any:
            return self.last(given["x"])

        def train_step(self, given: Any) -> Any:
            x, y = given
            with tf().GradientTape() as tape:
                loss = tf().reduce_mean(tf().square(self(x) - y))
            weights = self.trainable_variables
            pairs = zip(tape.gradient(loss, weights), weights, strict=True)
            self.optimizer.apply_gradients(pairs)
            return {"loss": loss}

    keras().utils.set_random_seed(1)
    of = Reads()
    of.compile("adam")
    half = tf().data.Dataset.from_tensor_slices(data()).shuffle(40, seed=3)
    half = half.map(lambda x, y: (tf().py_function(lambda v: v / 2, [x], tf().float32), y))
    half = half.map(lambda x, y: (tf().ensure_shape(x, (8,)), y)).batch(BATCH).map(batch)
    of.fit(half, epochs=2, verbose=0, callbacks=capture.callbacks())
    capture.weights(of)


@kind("PyDataset with worker processes")
def workers(capture: Capture) -> None:
    class Batches(keras().utils.PyDataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 6

        def __getitem__(self, number: int) -> Any:
            x, y = data()
            return x[number * BATCH : (number + 1) * BATCH], y[
                number * BATCH : (number + 1) * BATCH
            ]

    of = model()
    given = Batches(workers=2, use_multiprocessing=True, max_queue_size=2)
    of.fit(given, epochs=2, shuffle=False, verbose=0, callbacks=capture.callbacks())
    capture.weights(of)


@kind("Keras's own callbacks, including TensorBoard with a profile")
def other_callbacks(capture: Capture) -> None:
    of, made = model(), keras().callbacks
    folder = capture.folder
    others = [
        made.TensorBoard(str(folder / "board"), profile_batch=(3, 5), update_freq="batch"),
        made.ModelCheckpoint(str(folder / "best.keras")),
        made.EarlyStopping("loss", patience=1),
        made.ReduceLROnPlateau("loss", patience=0),
        made.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        made.CSVLogger(str(folder / "log.csv")),
    ]
    fit(of, [*others[:3], *capture.callbacks(), *others[3:]], epochs=3)
    capture.weights(of)
    capture.result([os.path.exists(folder / "best.keras")])  # noqa: PTH110


@kind("losses and weights that are not numbers", arguments=("-W", "always"))
def no_numbers(capture: Capture) -> None:
    for rate in (1e12, float("nan")):
        of = model(optimizer=keras().optimizers.SGD(rate))
        fit(of, capture.callbacks())
        capture.result([np.isfinite(weight).sum() for weight in of.get_weights()])


@kind("threads that outlive the fit")
def outliving_threads(capture: Capture) -> None:
    def work() -> None:
        until_s = time.monotonic() + 2
        while time.monotonic() < until_s:
            next(iter(dataset()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    of = model()
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("the model, optimizer and callbacks copied and pickled in the middle of a fit")
def pickles(capture: Capture) -> None:
    copies: list[Any] = []
    callbacks = [*capture.callbacks(), keras().callbacks.History()]

    def copy_all(of: Any) -> None:
        copies.append(keras().models.clone_model(of))
        copies.append(copy.deepcopy(of))
        copies.append(pickle.loads(pickle.dumps(of)))
        copies.append(copy.deepcopy(of.optimizer))

    of = model()
    fit(of, [*callbacks, at_batch(3, copy_all)])
    pickle.loads(pickle.dumps(callbacks[:-1]))
    for twin in copies[1:3]:
        fit(twin, [], epochs=1)
    capture.weights(of, *copies[1:3])


@kind("saving: .keras, .h5, weights, checkpoints, SavedModel of the train step")
def saving(capture: Capture) -> None:
    of, folder = model(), capture.folder
    names = ("model.keras", "model.h5")
    fit(of, [*capture.callbacks(), at_batch(2, lambda m: m.save(folder / names[0]))])
    of.save(folder / names[1])
    tf().train.Checkpoint(model=of, optimizer=of.optimizer).save(str(folder / "checkpoint"))

    class Trained(tf().Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf().Variable(np.ones((8, 1), "float32"))
            self.optimizer = keras().optimizers.SGD(0.1)
            self.optimizer.build([self.weight])
            self.held = [v.value if hasattr(v, "value") else v for v in self.optimizer.variables]

        @tf().function
        def step(self, x: Any) -> Any:
            with tf().GradientTape() as tape:
                loss = tf().reduce_mean(x @ self.weight)
            self.optimizer.apply([tape.gradient(loss, self.weight)], [self.weight])
            return loss

    module = Trained()
    with capture.watch(None, module.optimizer) as watched:
        for x, _ in dataset():
            watched.step(loss=module.step(x))
    tf().saved_model.save(module, str(folder / "exported"))
    of.export(str(folder / "served"), verbose=False)
    loaded = keras().models.load_model(folder / names[0])
    capture.weights(of, loaded)
    capture.result([module.weight.numpy(), loaded.predict(data()[0], verbose=0)])


@kind("100 fits, each with its own folder: models, threads, descriptors, memory")
def hundred_fits(capture: Capture) -> None:
    _many_fits(capture, 100, raises=False)


@kind("25 fits that end with an exception: models, threads, descriptors, memory")
def left_fits(capture: Capture) -> None:
    _many_fits(capture, 25, raises=True)


def _many_fits(capture: Capture, count: int, raises: bool) -> None:
    """What was there after some of them must be all that is there after the last."""
    alive: list[weakref.ref[Any]] = []
    before: dict[str, float] = {}
    for number in range(count):
        of = model()
        alive.append(weakref.ref(of))
        logdir = f"{capture.logdir}/{number}" if number % 2 else None
        callbacks = capture.callbacks(logdir, profile=number < 3, report=False)
        with contextlib.suppress(ValueError):
            fit(of, [*callbacks, *([at_batch(4, _fail)] if raises else [])], epochs=1)
        capture.weights(of)
        del of, callbacks  # any callback keeps its model
        keras().backend.clear_session()
        if number == count // 2:
            before = _in_use(alive)
    after = _in_use(alive)
    capture.left = {what: after[what] - before[what] for what in after}
    capture.left["models"] = after["models"]


def _fail(of: Any) -> None:
    raise ValueError("in the middle of a fit")


def _in_use(models: list[weakref.ref[Any]]) -> dict[str, float]:
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:  # a watchdog looks each second, and a profile is saved
        time.sleep(4)
        gc.collect()
        if not any(each() is not None for each in models):
            break
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "models": sum(each() is not None for each in models),
        "threads": threading.active_count(),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "megabytes": round(pages * 4096 / 2**20),
    }
