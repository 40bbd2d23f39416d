"""Two captures at once, other profilers, notebooks, and Keras without TensorFlow."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import Any

import numpy as np

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.odd_fits import at_batch
from tests.scenarios.harm.small import BATCH, data, fit, model, tf


@kind("two callbacks at once, with one folder and with two")
def two_callbacks(capture: Capture) -> None:
    for other in (None, f"{capture.logdir}/other"):
        of = model()
        fit(of, [*capture.callbacks(), *capture.callbacks(other)])
        capture.weights(of)


@kind("`watch` around a fit that has the callback")
def watch_and_callback(capture: Capture) -> None:
    of = model()
    with capture.watch(of) as watched:
        fit(of, capture.callbacks())
        watched.step()
    capture.weights(of)


@kind("the program profiles itself at the same time")
def own_profiler(capture: Capture) -> None:
    profiler = tf().profiler.experimental

    def profile(_: Any) -> None:
        profiler.start(str(capture.folder / "profile"))

    of = model()
    stop = at_batch(6, lambda _: profiler.stop())
    fit(of, [*capture.callbacks(), at_batch(3, profile), stop])
    capture.weights(of)


NUMBERS = re.compile(r"\d+")
KERNEL_S = 200.0
CELLS = (
    "import sys; from tests.scenarios.harm import small, capture; from pathlib import Path",
    "c = capture.Capture(Path({folder!r}), {logdir!r}); m = small.model()",
    "small.fit(m, c.callbacks())",
    "raise ValueError('in a cell')",
    "small.fit(m, c.callbacks(), epochs=1); c.weights(m); print(c.results)",
)


@kind("a notebook: cells in a real kernel", needs="ipykernel")
def notebook(capture: Capture) -> None:
    kernels = import_module("jupyter_client.manager")
    manager, client = kernels.start_new_kernel(kernel_name="python3", env={**os.environ})
    try:
        for cell in CELLS:
            code = cell.format(folder=str(capture.folder), logdir=capture.logdir)
            shown = _shown(client, code)
            capture.result(text for text in shown if text and "stall-analyze" not in text)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _shown(client: Any, code: str) -> list[str]:
    """What a cell prints or raises."""
    texts: list[str] = []
    hook = {"output_hook": lambda message: texts.append(_text(message))}
    client.execute_interactive(code, timeout=KERNEL_S, **hook)
    return texts


def _text(message: Any) -> str:
    content = message["content"]
    text = str(content.get("text") or content.get("ename") or "")
    # TensorFlow greets with the time and its process.
    return " ".join(NUMBERS.sub("", text).split()) if content.get("name") == "stderr" else text


def _without_tensorflow(capture: Capture) -> None:
    import keras  # noqa: PLC0415

    keras.utils.set_random_seed(1)
    of = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    of.compile("adam", "mse")
    x, y = data()
    options = {"batch_size": BATCH, "epochs": 2, "verbose": 0, "shuffle": False}
    of.fit(x, y, validation_split=0.25, callbacks=capture.callbacks(), **options)
    with capture.watch(of) as watched:
        for _ in range(3):
            watched.step(loss=np.float32(of.train_on_batch(x, y)))
    capture.weights(of)
    capture.result(["tensorflow" in sys.modules])


@kind("Keras on JAX, without TensorFlow", needs="jax", environment=(("KERAS_BACKEND", "jax"),))
def keras_on_jax(capture: Capture) -> None:
    _without_tensorflow(capture)


@kind(
    "Keras on PyTorch, without TensorFlow", needs="torch", environment=(("KERAS_BACKEND", "torch"),)
)
def keras_on_torch(capture: Capture) -> None:
    _without_tensorflow(capture)
