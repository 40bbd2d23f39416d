"""Programs whose input is slow in native ops, files or threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import forms
from tests.scenarios.faults.input_common import AUTOTUNE, files_of, fit, flat_model, pictures
from tests.scenarios.workloads import (
    arrays,
    batches,
    busy_cores,
    dense_model,
    rows,
    sleepy_batches,
    write_records,
)

# ------------------------------------------------------------ native maps


def _spectra() -> tf.data.Dataset:
    def prepare(seed: Any) -> tuple[Any, Any]:
        noise = tf.random.stateless_normal((160, 160), seed=[1, tf.cast(seed, tf.int32)])
        for _ in range(4):
            noise = tf.math.real(tf.signal.ifft2d(tf.signal.fft2d(tf.cast(noise, tf.complex64))))
        return tf.reshape(noise, (-1,))[:64], tf.constant(1)

    return tf.data.Dataset.range(960).map(prepare, num_parallel_calls=AUTOTUNE)


def _random_crops(batch: Any, labels: Any) -> tuple[Any, Any]:
    """Random crops, color and contrast, as augmentation is often written: after batch."""
    small = tf.image.random_crop(batch, (8, 200, 200, 3))
    small = tf.image.random_contrast(tf.image.random_hue(small, 0.1), 0.7, 1.3)
    return tf.image.resize(small, (32, 32)), labels


def _batches_of_pictures() -> tf.data.Dataset:
    return pictures(1024, side=256, distinct=32).batch(8, drop_remainder=True)


def random_map_serial(logdir: str) -> None:
    """A function with random ops has state, and tf.data leaves it serial."""
    fit(logdir, _batches_of_pictures().map(_random_crops), flat_model((32, 32, 3)))


def random_map_parallel(logdir: str) -> None:
    data = _batches_of_pictures().map(_random_crops, num_parallel_calls=AUTOTUNE)
    fit(logdir, data.prefetch(AUTOTUNE), flat_model((32, 32, 3)))


def heavy_map_each_epoch(logdir: str) -> None:
    fit(logdir, _spectra().batch(16).prefetch(AUTOTUNE))


def heavy_map_stored(logdir: str) -> None:
    """The same features, made once and stored."""
    stored = str(files_of(logdir) / "features")
    _spectra().save(stored)
    fit(logdir, tf.data.Dataset.load(stored).batch(16).prefetch(AUTOTUNE))


def map_before_batch(logdir: str) -> None:
    data = rows(60_000).map(lambda x, y: ((x - 0.5) * 2.0, y)).batch(1000)
    fit(logdir, data)


def map_after_batch(logdir: str) -> None:
    fit(logdir, rows(60_000).batch(1000).map(lambda x, y: ((x - 0.5) * 2.0, y)))


# ------------------------------------------------------------ files


FILES, FILE_BATCH = 24_000, 800


def small_files(logdir: str) -> None:
    folder = files_of(logdir)
    x, _ = arrays(1)
    for index in range(FILES):
        (folder / f"{index:05d}.raw").write_bytes(x.tobytes())

    def read(path: Any) -> tuple[Any, Any]:
        row = tf.io.decode_raw(tf.io.read_file(path), tf.float32)
        return tf.ensure_shape(row, (64,)), tf.constant(1)

    paths = tf.data.Dataset.list_files(str(folder / "*.raw"), shuffle=False)
    fit(logdir, paths.map(read).batch(FILE_BATCH))


def one_record_file(logdir: str) -> None:
    path = files_of(logdir) / "all.tfrecord"
    write_records(path, FILES)

    def parse(records: Any) -> tuple[Any, Any]:
        x = tf.io.decode_raw(records, tf.float32)
        return tf.ensure_shape(x, (None, 64)), tf.ones(tf.shape(records), tf.int32)

    fit(logdir, tf.data.TFRecordDataset(str(path)).batch(FILE_BATCH).map(parse).prefetch(AUTOTUNE))


@forms
def packed_records(logdir: str, compression: str) -> None:
    path = files_of(logdir) / "all.tfrecord"
    write_records(path, 1800, features=40_000, compression=compression)

    def parse(records: Any) -> tuple[Any, Any]:
        x = tf.io.decode_raw(records, tf.float32)[:, :64]
        return tf.ensure_shape(x, (None, 64)), tf.ones(tf.shape(records), tf.int32)

    data = tf.data.TFRecordDataset(str(path), compression).batch(30).map(parse)
    fit(logdir, data.prefetch(AUTOTUNE))


@forms
def jpeg_pictures(logdir: str, side: int) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (side // 8, side // 8, 3))
    pixels = np.kron(noise, np.ones((8, 8, 1))).astype(np.uint8)
    jpeg = tf.io.encode_jpeg(tf.constant(pixels))

    def decode(data: Any) -> tuple[Any, Any]:
        picture = tf.io.decode_jpeg(data, channels=3)
        return tf.image.resize(picture, (32, 32)) / 255.0, tf.constant(1)

    data = tf.data.Dataset.from_tensors(jpeg).repeat(480)
    data = data.map(decode, num_parallel_calls=AUTOTUNE).batch(8).prefetch(AUTOTUNE)
    fit(logdir, data, flat_model((32, 32, 3)))


# ------------------------------------------------------------ cores, steps, iterators


@forms
def input_takes_cores(logdir: str, cached: bool) -> None:
    x, y = arrays(512)

    def prepare(index: Any) -> tuple[Any, Any]:
        return tf.constant(x) + busy_cores(index), tf.constant(y)

    data = tf.data.Dataset.range(6).map(prepare, num_parallel_calls=2)
    data = (data.cache() if cached else data).repeat(12).prefetch(2)
    fit(logdir, data, dense_model(layers=2, units=768))


@forms
def batches_of_two(logdir: str, steps_per_call: int) -> None:
    model = dense_model(units=16, steps_per_execution=steps_per_call)
    fit(logdir, rows(1200).batch(2, drop_remainder=True).prefetch(AUTOTUNE), model)


def _long_pipeline() -> tf.data.Dataset:
    data = rows(40 * 64).batch(64)
    for number in range(120):
        data = data.map(lambda x, y, n=number: (x + tf.cast(n, tf.float32) * 1e-6, y))
    return data


def data_set_made_each_epoch(logdir: str) -> None:
    fit(logdir, _long_pipeline(), epochs=3)


def data_set_made_once(logdir: str) -> None:
    fit(logdir, _long_pipeline().repeat(), epochs=3, steps_per_epoch=40)


# ------------------------------------------------------------ nothing wrong


def hidden_generator(logdir: str) -> None:
    """15 ms a batch in the background, longer steps: nothing is lost."""
    data = sleepy_batches(0.015, batch=1024).prefetch(4)
    fit(logdir, data, dense_model(layers=3, units=1024), steps_per_epoch=40)


def ready_batches(logdir: str) -> None:
    fit(logdir, batches(30, 1024), dense_model(layers=3, units=1024))


def arrays_in_memory(logdir: str) -> None:
    x, y = arrays(25 * 1024)
    fit(logdir, x, dense_model(layers=3, units=1024), y=y, batch_size=1024)


def written_serially(logdir: str) -> None:
    """Neither parallel nor prefetched in the source, both at run time: no advice is due."""
    data = rows(40 * 256).map(lambda x, y: (x * 2.0, y)).batch(256)
    fit(logdir, data, dense_model(layers=3, units=1536))
