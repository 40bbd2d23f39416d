"""Programs of different kinds whose input works during the steps, each with a control.

python -m tests.scenarios.controls.programs NAME FOLDER

A program trains epochs on one ready batch and epochs on its input by turns, all of them logged and
profiled alike, so that what logging costs cancels out. What an epoch on its input takes longer than
those on ready batches before and after it is what input cost, whatever the trace shows. The median
over the turns is the truth: single epochs differ by up to a third, as machines change their speed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.workloads import arrays, dense_model, from_logits

WARM_UP_STEPS = 20
TURNS = 9


@dataclass(frozen=True)
class Training:
    """`data` may be anything that fit() takes; `one` is a batch of it."""

    model: keras.Model
    data: Any
    one: Any
    steps: int


def generator_in_python() -> Training:
    """Parses text in pure Python, and so holds the interpreter."""
    x, y = arrays(64)
    lines = [",".join(f"{value:.4f}" for value in row) for row in x]

    def read() -> Iterator[Any]:
        while True:
            yield (
                np.array([[float(v) for v in line.split(",")] * 5 for line in lines], "float32"),
                y,
            )

    return Training(dense_model(features=320), read(), next(read()), 300)


class Augmented(keras.utils.PyDataset):
    """Pictures that numpy turns into others."""

    def __init__(self, steps: int, **options: Any) -> None:
        super().__init__(**options)
        self.steps = steps
        self.pictures = np.random.default_rng(1).random((32, 48, 48, 3), "float32")

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        turned = [np.rot90(p, index % 4) * 0.9 + np.sin(p) * 0.1 for p in self.pictures]
        blurred = [sum(np.roll(p, n, axis=0) for n in range(5)) / 5 for p in turned]
        return np.stack(blurred).astype("float32"), np.arange(32) % 10


def py_dataset() -> Training:
    data = Augmented(60)
    return Training(conv_model(48), data, data[0], 60)


def py_function_map() -> Training:
    """Words are looked up in a dictionary of Python, batch by batch."""
    words = [f"word{n}" for n in range(500)]
    numbers = {word: n for n, word in enumerate(words)}
    texts = np.array([" ".join(np.roll(words, n)[:100]) for n in range(64)])

    def encode(batch: Any) -> Any:
        rows = [[numbers[w] for w in text.decode().split()] for text in batch.numpy()]
        return np.array(rows, "float32")[:, :64] / 500

    def load(batch: Any) -> tuple[Any, Any]:
        return tf.ensure_shape(tf.py_function(encode, [batch], tf.float32), (64, 64)), arrays(64)[1]

    data = tf.data.Dataset.from_tensors(texts).repeat(300).map(load).prefetch(tf.data.AUTOTUNE)
    return Training(dense_model(), data, next(iter(data)), 300)


def native_map() -> Training:
    """Pictures are resized on all cores during convolutions."""
    pictures = np.random.default_rng(1).integers(0, 255, (64, 96, 96, 3)).astype("uint8")

    def resize(picture: Any) -> tuple[Any, Any]:
        large = tf.image.resize(tf.cast(picture, tf.float32), (128, 128), "bicubic")
        return tf.image.random_crop(large, (48, 48, 3)) / 255.0, tf.constant(1)

    data = tf.data.Dataset.from_tensor_slices(pictures).repeat(25)
    data = data.map(resize, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(2)
    return Training(conv_model(48, layers=3), data, next(iter(data)), 50)


def interleaved_text() -> Training:
    """Lines of many files, parsed one by one: much to start, little to compute."""
    folder = Path(tempfile.mkdtemp())
    rows = np.random.default_rng(1).random((600, 16))
    for part in range(32):
        np.savetxt(folder / f"{part}.csv", rows, "%.5f", ",")

    def parse(line: Any) -> tuple[Any, Any]:
        values = tf.io.decode_csv(line, [[0.0]] * 16)
        return tf.stack(values[:-1], -1), tf.cast(values[-1] * 9, tf.int32)

    files = tf.data.Dataset.list_files(str(folder / "*.csv"), shuffle=False)
    lines = files.interleave(tf.data.TextLineDataset, cycle_length=4).shuffle(500)
    data = lines.map(parse).batch(32).prefetch(1)
    return Training(dense_model(units=32, features=15), data, next(iter(data)), 500)


def decoded_pictures() -> Training:
    """JPEGs are decoded in parallel beside a model that is little more than dispatch."""
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3))
    jpeg = tf.io.encode_jpeg(tf.constant(noise, tf.uint8)).numpy()

    def decode(text: Any) -> tuple[Any, Any]:
        picture = tf.image.resize(tf.io.decode_jpeg(text, channels=3), (8, 8))
        return tf.reshape(picture[..., 0], (64,)) / 255.0, tf.constant(1)

    data = tf.data.Dataset.from_tensors(jpeg).repeat(16 * 500)
    data = data.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(4)
    return Training(dense_model(units=64), data, next(iter(data)), 500)


def conv_model(side: int, layers: int = 2) -> keras.Model:
    keras.utils.set_random_seed(1)
    hidden = [keras.layers.Conv2D(16, 3, activation="relu") for _ in range(layers)]
    ends = [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    model = keras.Sequential([keras.layers.Input((side, side, 3)), *hidden, *ends])
    model.compile("sgd", from_logits())
    return model


PROGRAMS: dict[str, Callable[[], Training]] = {
    program.__name__: program
    for program in (
        generator_in_python,
        py_dataset,
        py_function_map,
        native_map,
        interleaved_text,
        decoded_pictures,
    )
}


# ---------------------------------------------------------------- running


class EpochClock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.begin = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seconds = time.perf_counter() - self.begin


def logged_epoch(training: Training, data: Any, logdir: Path) -> float:
    """Seconds of one epoch, with scalars of each batch and under the profiler."""
    board = keras.callbacks.TensorBoard(str(logdir), update_freq="batch", profile_batch=0)
    clock = EpochClock()
    steps = None if isinstance(data, keras.utils.PyDataset) else training.steps
    with tf.profiler.experimental.Profile(str(logdir)):
        training.model.fit(data, steps_per_epoch=steps, verbose=0, callbacks=[clock, board])
    return clock.seconds


def logged_turn(training: Training, ready: Any, folder: Path, turn: int) -> tuple[float, float]:
    """The first turn, -1, is to warm up."""
    without = logged_epoch(training, ready, folder / f"ready{turn}")
    return without, logged_epoch(training, training.data, folder / f"logs{turn}")


def main(name: str, folder: Path) -> None:
    training = PROGRAMS[name]()
    ready = tf.data.Dataset.from_tensors(tuple(training.one)).repeat(training.steps).prefetch(4)
    training.model.fit(ready.take(WARM_UP_STEPS), verbose=0)  # builds the graph
    turns = [logged_turn(training, ready, folder, turn) for turn in range(-1, TURNS)][1:]
    ready_s = [without for without, _ in turns]
    ready_s.append(logged_epoch(training, ready, folder / "ready"))
    beside = [(before + after) / 2 for before, after in pairwise(ready_s)]
    shares = [1 - without / epoch for without, (_, epoch) in zip(beside, turns, strict=True)]
    truth = {
        "input_share": median(shares),
        "shares": sorted(shares),
        "ready_s": ready_s,
        "epochs_s": [epoch for _, epoch in turns],
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
