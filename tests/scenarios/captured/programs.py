"""Trainings with StallCallback alone whose fault shows only in what it measures, and fixed forms.

python -m tests.scenarios.captured.programs NAME LOGDIR
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_stall_plugin import StallCallback
from tests.scenarios.faults import base
from tests.scenarios.faults.base import Program, forms
from tests.scenarios.faults.learnable import CLASSES, FEATURES, blobs
from tests.scenarios.workloads import arrays, batches, dense_model, from_logits, signature

NOT_HERE = "this cannot be produced here"


@dataclass(frozen=True)
class Case:
    name: str
    finding: str | None  # None: nothing may be found to act on in its numerics
    says: tuple[str, ...]  # words of the finding: the layer must be named
    program: Program


# ---------------------------------------------------------------- gradients


@forms
def classifier(
    logdir: str,
    /,
    hidden: list[keras.layers.Layer],
    optimizer: Any,
    epochs: int = 3,
    **compile_options: Any,
) -> None:
    """Layers are named, so that what is said of them can be checked."""
    keras.utils.set_random_seed(1)
    head = keras.layers.Dense(CLASSES, name="head", dtype="float32")
    model = keras.Sequential([keras.Input((FEATURES,)), *hidden, head])
    model.compile(optimizer(), from_logits(), **compile_options)
    x, y = blobs()
    model.fit(x, y, batch_size=32, epochs=epochs, verbose=0, callbacks=[StallCallback(logdir)])


def layers(count: int, **options: Any) -> list[keras.layers.Layer]:
    return [keras.layers.Dense(32, name=f"layer_{n}", **options) for n in range(count)]


def sgd() -> keras.optimizers.Optimizer:
    return keras.optimizers.SGD(0.01)


def fast_sgd() -> keras.optimizers.Optimizer:
    return keras.optimizers.SGD(0.5)


def with_bias(layer: int, bias: float) -> list[keras.layers.Layer]:
    """Three layers of relu, one of which begins with this bias."""
    return [
        keras.layers.Dense(
            32,
            "relu",
            name=f"layer_{n}",
            bias_initializer=keras.initializers.Constant(bias if n == layer else 0.0),
        )
        for n in range(3)
    ]


# ---------------------------------------------------------------- rates and scales


@forms
def small_rate(logdir: str, rate: float) -> None:
    """A custom model, about which TensorBoard could store nothing."""

    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = keras.layers.Dense(32, "relu")
            self.last = keras.layers.Dense(CLASSES)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    keras.utils.set_random_seed(1)
    model = Own()
    model.compile(keras.optimizers.Adam(rate), from_logits())
    x, y = blobs()
    model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[StallCallback(logdir)])


@forms
def scaled(logdir: str, initial: float) -> None:
    """Mixed precision compiled by XLA, which hides the ops of a step from the profiler."""

    def optimizer() -> keras.optimizers.Optimizer:
        inner = keras.optimizers.SGD(0.01)
        return keras.optimizers.LossScaleOptimizer(inner, initial_scale=initial)

    hidden = layers(2, activation="relu", dtype="mixed_float16")
    classifier(hidden, optimizer, epochs=1, jit_compile=True)(logdir)


# ---------------------------------------------------------------- memory, and long epochs


class KeepOutputs(keras.callbacks.Callback):
    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.keep, self.kept = keep, []  # type: ignore[var-annotated]

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        outputs = np.random.default_rng(batch).normal(size=150_000)  # 1.2 MB
        if self.keep:
            self.kept.append(outputs)


@forms
def keeps_arrays(logdir: str, keep: bool) -> None:
    model = dense_model(layers=3, units=768)
    data = batches(700, batch=384)
    model.fit(data, verbose=0, callbacks=[KeepOutputs(keep), StallCallback(logdir)])


@forms
def slow_generator(logdir: str, pause_s: float) -> None:
    """So many steps that only samples of them are profiled."""

    def read() -> Iterator[Any]:
        batch = arrays(64)
        for _ in range(3000):
            if pause_s:
                time.sleep(pause_s)
            yield batch

    data = tf.data.Dataset.from_generator(read, output_signature=signature(batch=64))
    dense_model(layers=2, units=64).fit(
        data.prefetch(2), verbose=0, callbacks=[StallCallback(logdir)]
    )


# ---------------------------------------------------------------- limits of a container


def in_cgroup(controller: str, settings: dict[str, str]) -> None:
    """Moves this process into its own group, with these limits (version 1 of cgroups)."""
    group = Path("/sys/fs/cgroup", controller, f"stall-{os.getpid()}")
    try:
        group.mkdir()
        for name, value in settings.items():
            (group / name).write_text(value)
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        sys.exit(f"{NOT_HERE}: {error}")


@forms
def limited_cpu(logdir: str, cores: float | None) -> None:
    """`docker --cpus`, on a model that would use all cores."""
    if cores is not None:
        in_cgroup("cpu", {"cpu.cfs_quota_us": str(round(cores * 100_000))})
    model = dense_model(layers=3, units=512)
    model.fit(batches(150, batch=512), verbose=0, callbacks=[StallCallback(logdir)])


@forms
def limited_memory(logdir: str, megabytes: int | None) -> None:
    """Rows of a file that is larger than the memory there is, read here and there."""
    path = Path(logdir).parent / "rows.bin"
    rows, width = 200_000, 2_000  # 1.6 GB
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        for _ in range(100):
            file.write(random.random((rows // 100, width), np.float32).tobytes())
        # What is already cached would count as somebody else's memory.
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    data = np.memmap(path, np.float32, "r", shape=(rows, width))
    if megabytes is not None:
        in_cgroup("memory", {"memory.limit_in_bytes": str(megabytes << 20)})
    _, y = arrays(256)

    def read() -> Iterator[Any]:
        for _ in range(60):
            yield data[random.integers(0, rows, 256), :64], y

    dataset = tf.data.Dataset.from_generator(read, output_signature=signature())
    try:
        dense_model().fit(dataset, verbose=0, callbacks=[StallCallback(logdir)])
    finally:
        path.unlink()


# ---------------------------------------------------------------- healthy programs of the matrix


@contextmanager
def _captured(logdir: str, update_freq: str | int = "batch") -> Iterator[Any]:
    """In the place of the profiler and of TensorBoard's callback."""
    yield StallCallback(logdir)


def healthy() -> list[Case]:
    """Those of the fault matrix that train by fit()."""
    base.profiled = _captured  # before the programs import it
    from tests.scenarios.faults.numerics_healthy import HEALTHY as programs  # noqa: PLC0415

    return [
        Case(fault.name, None, (), fault.faulty)
        for fault in programs
        if fault.name != "healthy_custom_loop"
    ]


CASES = [
    Case(
        "vanishing", "ST310", ("vanish", "gradient norm of layer_0"),
        classifier(layers(10, activation="sigmoid"), sgd),
    ),
    Case(
        "vanishing_fixed", None, (),
        classifier(layers(10, activation="relu", kernel_initializer="he_normal"), sgd),
    ),
    Case(
        "exploding", "ST310", ("explode", "layer_"),
        classifier(
            layers(4, kernel_initializer=keras.initializers.RandomNormal(stddev=1.0, seed=1)),
            fast_sgd,
        ),
    ),
    Case("exploding_fixed", None, (), classifier(layers(4, activation="relu"), sgd)),
    Case("dead_first", "ST312", ("layer_0",), classifier(with_bias(0, -50.0), sgd)),
    Case("dead_second", "ST312", ("layer_1",), classifier(with_bias(1, -50.0), sgd)),
    Case("dead_fixed", None, (), classifier(with_bias(1, 0.0), sgd)),
    Case("small_rate", "ST304", ("weights hardly move", "1e-08"), small_rate(1e-8)),
    Case("small_rate_fixed", None, (), small_rate(1e-3)),
    Case("scale_under_xla", "ST308", ("updates were skipped",), scaled(2.0**60)),
    Case("scale_under_xla_fixed", None, (), scaled(2.0**15)),
    Case("keeps_arrays", "ST204", ("process grows", "with every step"), keeps_arrays(True)),
    Case("keeps_arrays_fixed", None, (), keeps_arrays(False)),
    Case("limited_cpu", "ST410", ("The CPU limit stopped the process",), limited_cpu(0.4)),
    Case("limited_cpu_fixed", None, (), limited_cpu(None)),
    Case("limited_memory", "ST207", ("pages had to be read back",), limited_memory(700)),
    Case("limited_memory_fixed", None, (), limited_memory(None)),
    Case("long_epoch", "ST002", ("profiled steps",), slow_generator(0.004)),
    Case("long_epoch_fixed", None, (), slow_generator(0.0)),
]  # fmt: skip


def all_cases() -> dict[str, Case]:
    return {case.name: case for case in (*CASES, *healthy())}


if __name__ == "__main__":
    name, folder = sys.argv[1:]
    all_cases()[name].program(folder)
