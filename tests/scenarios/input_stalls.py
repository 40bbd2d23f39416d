"""Programs that wait for their next batch, each for another reason."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import mean
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.instruments import Instruments
from tests.scenarios.workloads import (
    arrays,
    as_written,
    busy_cores,
    dense_model,
    from_logits,
    rows,
    sleeping,
    sleepy_batches,
    training_step,
    write_records,
)

STEPS = 60


def in_py_map(it: Instruments) -> None:
    data = rows(STEPS * 64).batch(64).map(sleeping(0.025, tf.py_function))
    it.fit(dense_model(), data)


def in_generator(it: Instruments) -> None:
    it.fit(dense_model(), sleepy_batches([0.03] * STEPS), steps_per_epoch=STEPS)


def in_generator_unsized(it: Instruments) -> None:
    """Keras learns the length of the epoch only when the data ends."""
    it.fit(dense_model(), sleepy_batches([0.03] * STEPS).prefetch(4), tensorboard="epoch")


def in_bursts(it: Instruments) -> None:
    pauses_s = [{20: 0.9, 45: 0.7}.get(step, 0.0) for step in range(STEPS)]
    it.fit(dense_model(), sleepy_batches(pauses_s), steps_per_epoch=STEPS)


def in_first_element(it: Instruments) -> None:
    data = sleepy_batches(0.0, first_s=2.0).prefetch(2)
    it.fit(dense_model(), data, steps_per_epoch=STEPS)


class SlowPyDataset(keras.utils.PyDataset):
    def __init__(self, seconds: float, hold_gil: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._batch = arrays(64)
        self._seconds, self._hold_gil = seconds, hold_gil

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not self._hold_gil:
            time.sleep(self._seconds)
        end = time.thread_time() + self._seconds
        while self._hold_gil and time.thread_time() < end:
            sum(range(1000))
        return self._batch


def in_pydataset(it: Instruments) -> None:
    it.fit(dense_model(), SlowPyDataset(0.03), shuffle=False)


def in_pydataset_workers(it: Instruments) -> None:
    data = SlowPyDataset(0.12, workers=3, max_queue_size=6)
    it.fit(dense_model(), data, shuffle=False, tensorboard="epoch")


def in_gil(it: Instruments) -> None:
    """Python that prepares batches also keeps the training thread from the interpreter."""
    data = SlowPyDataset(0.02, hold_gil=True, workers=2, max_queue_size=4)
    it.fit(dense_model(), data, shuffle=False)


def in_python_generator(it: Instruments) -> None:
    def read() -> Iterator[tuple[Any, Any]]:
        x, y = arrays(64)
        while True:
            time.sleep(0.03)
            yield x, y

    it.fit(dense_model(), read(), steps_per_epoch=STEPS)


def in_shuffle_fill(it: Instruments) -> None:
    data = rows(900).map(sleeping(0.003)).shuffle(500).batch(32)
    it.fit(dense_model(), data)


def in_cache_fill(it: Instruments) -> None:
    data = rows(640).map(sleeping(0.003)).cache().batch(16)
    it.fit(dense_model(), data, epochs=2)


def in_small_files(it: Instruments) -> None:
    folder = it.logdir.parent / "files"
    folder.mkdir()
    x, _ = arrays(1)
    for index in range(24000):
        (folder / f"{index:04d}.raw").write_bytes(x.tobytes())

    def read(path: Any) -> tuple[Any, Any]:
        row = tf.reshape(tf.io.decode_raw(tf.io.read_file(path), tf.float32), (64,))
        return row, tf.constant(1)

    files = tf.data.Dataset.list_files(str(folder / "*.raw"), shuffle=False)
    data = as_written(files.map(read).batch(800))
    it.fit(dense_model(), data)


def in_jpeg(it: Instruments) -> None:
    picture = tf.io.encode_jpeg(
        tf.constant(np.random.default_rng(1).integers(0, 255, (700, 700, 3)), tf.uint8)
    )

    def decode(jpeg: Any) -> tuple[Any, Any]:
        image = tf.io.decode_jpeg(jpeg, channels=3)
        small = tf.image.resize(image, (8, 8))
        return tf.reshape(small[..., 0], (64,)) / 255.0, tf.constant(1)

    files = tf.data.Dataset.from_tensors(picture).repeat(160)
    it.fit(dense_model(), as_written(files.map(decode).batch(4)))


def in_tfrecord_gz(it: Instruments) -> None:
    path = it.logdir.parent / "data.tfrecord.gz"
    write_records(path, 900, features=40_000, compression="GZIP")

    def parse(record: Any) -> tuple[Any, Any]:
        return tf.io.decode_raw(record, tf.float32)[:64], tf.constant(1)

    data = tf.data.TFRecordDataset(str(path), "GZIP").map(parse)
    data = data.map(lambda x, y: (tf.ensure_shape(x, (64,)), y)).batch(25)
    it.fit(dense_model(), as_written(data))


def in_steps_per_execution(it: Instruments) -> None:
    model = dense_model(units=768, steps_per_execution=8)
    it.fit(model, sleepy_batches(0.05, batch=256), steps_per_epoch=64)


def in_hidden(it: Instruments) -> None:
    """Input takes 15 ms a batch in the background, the step longer: nothing is lost."""
    data = sleepy_batches(0.015, batch=1024).prefetch(4)
    it.fit(dense_model(layers=3, units=1024), data, steps_per_epoch=50)


# Input that takes cores works in turns: batches that cost nothing, then batches that keep the cores
# busy. The control thus runs within a second of what it is compared with, because the machine's
# own speed drifts by more than that over minutes.
IDLE_STEPS, BUSY_STEPS, TURNS = 12, 8, 30
LOOK_AHEAD = 5  # steps by which such a pipeline may be ahead of the training


def _is_busy(step: Any) -> Any:
    return step % (IDLE_STEPS + BUSY_STEPS) >= IDLE_STEPS


def in_contention(it: Instruments) -> None:
    """Parallel native input is always in time, and takes the cores that the step needs."""
    x, y = arrays(512)

    def read(index: Any) -> tuple[Any, Any]:
        extra = tf.cond(_is_busy(index), lambda: busy_cores(index), lambda: 0.0)
        return tf.constant(x) + extra, tf.constant(y)

    data = tf.data.Dataset.range(10**6).map(read, num_parallel_calls=2).prefetch(2)
    _contended(it, dense_model(layers=2, units=768), data)


def in_contention_jpeg(it: Instruments) -> None:
    """Pictures are decoded in the background, while a network of convolutions needs the cores."""
    side, batch = 48, 32
    noise = np.random.default_rng(1).integers(0, 255, (220, 220, 3))
    picture = tf.io.encode_jpeg(tf.constant(noise, tf.uint8))
    ready = tf.random.uniform((side, side, 3), seed=1)

    def decode() -> Any:
        image = tf.image.resize(tf.io.decode_jpeg(picture, channels=3), (side, side))
        return image / 255.0

    def read(index: Any) -> tuple[Any, Any]:
        return tf.cond(_is_busy(index // batch), decode, lambda: ready), tf.constant(1)

    pictures = tf.data.Dataset.range(10**6).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Conv2D(24, 3, activation="relu") for _ in range(3)]
    ends = [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    model = keras.Sequential([keras.layers.Input((side, side, 3)), *layers, *ends])
    model.compile("sgd", from_logits())
    _contended(it, model, pictures.batch(batch).prefetch(2))


def _contended(it: Instruments, model: keras.Model, data: Any) -> None:
    period = IDLE_STEPS + BUSY_STEPS
    it.fit(model, data, steps_per_epoch=TURNS * period + IDLE_STEPS)
    it.read_stamps()
    lengths = it.train_step_seconds()
    # At the start of a turn the last busy batch is done and the next one not yet begun. Means, not
    # medians: what the machine does to a step by chance is part of the sums they are taken from.
    free = IDLE_STEPS - LOOK_AHEAD
    usual = [
        mean(lengths[turn * period + (2 if turn == 0 else 0) :][:free]) for turn in range(TURNS + 1)
    ]
    lost = sum(
        sum(lengths[turn * period + free : (turn + 1) * period])
        - (period - free) * (usual[turn] + usual[turn + 1]) / 2
        for turn in range(TURNS)
    )
    it.notes.append("steps on idle input: " + ", ".join(f"{s * 1e3:.1f} ms" for s in usual))
    it.knowledge.moves.append(("compute", "input", lost))
    it.how["input"] = "wait in graph, plus what steps lose against their neighbors on idle input"


def in_loop(it: Instruments) -> None:
    """A custom loop with step markers."""
    _custom_loop(it, marked=True)


def in_loop_unmarked(it: Instruments) -> None:
    _custom_loop(it, marked=False)


def _custom_loop(it: Instruments, marked: bool) -> None:
    model = dense_model()
    step = it.timed(tf.function(it.stamped_step(training_step(model))))
    with it.profile(), it.epoch():
        for number, (x, y) in enumerate(sleepy_batches([0.03] * STEPS)):
            if marked:
                with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                    step(x, y)
            else:
                step(x, y)
