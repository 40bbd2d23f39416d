"""Programs whose input is slow in Python, or waits for something outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import forms
from tests.scenarios.faults.input_common import AUTOTUNE, files_of, fit, flat_model, pictures
from tests.scenarios.input_stalls import SlowPyDataset
from tests.scenarios.workloads import (
    arrays,
    as_written,
    dense_model,
    rows,
    signature,
    sleeping,
)

# ------------------------------------------------------------ Python in a map


def _python_augment(picture: Any) -> Any:
    """Contrast and noise, pixel row by pixel row, as a first version is often written."""
    result = np.empty_like(picture)
    mean = picture.mean()
    for row in range(picture.shape[0]):
        for channel in range(3):
            result[row, :, channel] = (picture[row, :, channel] - mean) * 1.3 + mean
    return np.clip(result[:, ::-1], 0, 1)


def python_augmentation(logdir: str) -> None:
    def augment(picture: Any, label: Any) -> tuple[Any, Any]:
        result = tf.numpy_function(_python_augment, [picture], tf.float32)
        return tf.ensure_shape(result, (48, 48, 3)), label

    fit(logdir, pictures(3072).map(augment).batch(64), flat_model((48, 48, 3), units=256))


def python_augmentation_parallel(logdir: str) -> None:
    """Parallel calls do not help: there is one interpreter."""

    def augment(picture: Any, label: Any) -> tuple[Any, Any]:
        result = tf.py_function(lambda p: _python_augment(p.numpy()), [picture], tf.float32)
        return tf.ensure_shape(result, (48, 48, 3)), label

    data = pictures(3072).map(augment, num_parallel_calls=AUTOTUNE).batch(64).prefetch(AUTOTUNE)
    fit(logdir, data, flat_model((48, 48, 3), units=256))


def native_augmentation(logdir: str) -> None:
    def augment(batch: Any, labels: Any) -> tuple[Any, Any]:
        mean = tf.reduce_mean(batch, axis=(1, 2, 3), keepdims=True)
        return tf.clip_by_value((batch - mean) * 1.3 + mean, 0, 1)[:, :, ::-1], labels

    data = pictures(3072).batch(64).map(augment, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    fit(logdir, data, flat_model((48, 48, 3), units=256))


# ------------------------------------------------------------ generators


LINES, LINE_FEATURES, LINE_BATCH = 6400, 64, 128


def _lines() -> list[str]:
    values = np.random.default_rng(1).random((LINES, LINE_FEATURES)).round(4)
    return [",".join(map(str, row)) for row in values]


def generator_parses_text(logdir: str) -> None:
    lines = _lines()

    def read() -> Iterator[tuple[Any, int]]:
        for line in lines:
            row = np.array([float(field) for field in line.split(",")], dtype=np.float32)
            yield (row - row.mean()) / (row.std() + 1e-6), 1

    spec = (tf.TensorSpec((LINE_FEATURES,), tf.float32), tf.TensorSpec((), tf.int32))
    data = tf.data.Dataset.from_generator(read, output_signature=spec).batch(LINE_BATCH)
    fit(logdir, data, dense_model(features=LINE_FEATURES))


def tensorflow_parses_text(logdir: str) -> None:
    def parse(lines: Any) -> tuple[Any, Any]:
        fields = tf.io.decode_csv(lines, [[0.0]] * LINE_FEATURES)
        x = tf.stack(fields, axis=1)
        mean, variance = tf.nn.moments(x, axes=[1], keepdims=True)
        return (x - mean) / (tf.sqrt(variance) + 1e-6), tf.ones(tf.shape(lines), tf.int32)

    lines = tf.data.Dataset.from_tensor_slices(_lines()).batch(LINE_BATCH)
    data = lines.map(parse, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    fit(logdir, data, dense_model(features=LINE_FEATURES))


@forms
def remote_batches(logdir: str, /, **options: Any) -> None:
    """Each batch comes from a store that answers after 40 ms."""
    fit(logdir, SlowPyDataset(0.04, **options), shuffle=False)


@forms
def data_loaded(logdir: str, before: bool) -> None:
    """All is made ready inside the generator, before its first yield; or before training."""
    loaded = _slowly_loaded() if before else None

    def read() -> Iterator[tuple[Any, Any]]:
        everything = loaded or _slowly_loaded()
        while True:
            yield everything

    data = tf.data.Dataset.from_generator(read, output_signature=signature()).prefetch(2)
    fit(logdir, data, steps_per_epoch=60)


def _slowly_loaded() -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    for _ in range(100):
        np.sort(random.random(500_000))
    return arrays(64)


# ------------------------------------------------------------ prefetch, shuffle, cache


@forms
def rewrites_are_off(logdir: str, prefetched: bool) -> None:
    """The rewrites of tf.data, as some switch them off for reproducible runs."""
    data = rows(50 * 512).batch(512, drop_remainder=True).map(sleeping(0.02))
    data = data.prefetch(4) if prefetched else data
    fit(logdir, as_written(data), dense_model(layers=3, units=512))


def shuffle_after_slow_map(logdir: str) -> None:
    data = rows(2000).map(sleeping(0.0008)).shuffle(1500).batch(50, drop_remainder=True)
    fit(logdir, data.prefetch(4), _heavy_model())


def shuffle_before_slow_map(logdir: str) -> None:
    data = rows(2000).shuffle(1500).map(sleeping(0.0008)).batch(50, drop_remainder=True)
    fit(logdir, data.prefetch(4), _heavy_model())


def _heavy_model() -> keras.Model:
    return dense_model(layers=4, units=2048)


def cache_is_filled(logdir: str) -> None:
    fit(logdir, rows(640).map(sleeping(0.003)).cache().batch(16), epochs=2)


def cache_on_disk(logdir: str) -> None:
    """An earlier start left the cache behind."""
    kept = str(files_of(logdir) / "cache")
    data = rows(640).map(sleeping(0.003)).cache(kept)
    for _ in data:
        pass
    fit(logdir, data.batch(16), epochs=2)


def cache_before_slow_map(logdir: str) -> None:
    fit(logdir, rows(640).cache().map(sleeping(0.003)).batch(16), epochs=2)
