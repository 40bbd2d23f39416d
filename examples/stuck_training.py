"""A training script that waits for its input, and its fix.

    python examples/stuck_training.py --logdir logs/stuck
    stall-analyze logs/stuck
    python examples/stuck_training.py --logdir logs/fixed --fixed
    stall-analyze logs/fixed

A Python function in the input pipeline brightens each batch. It takes 20 ms, and the step waits for
it every time. The fix is what the finding advises: do the same with TensorFlow ops, in parallel.
"""

from __future__ import annotations

import argparse
import time

import keras
import numpy as np
import tensorflow as tf

from tb_stall_plugin import StallCallback

BATCHES, BATCH_SIZE, PIXELS = 60, 32, 256


def brighten_slowly(images: tf.Tensor) -> np.ndarray:
    time.sleep(0.02)  # stands in for PIL, OpenCV or your own library
    return np.clip(images.numpy() * 1.2, 0.0, 1.0).astype("float32")


def brighten(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.clip_by_value(images * 1.2, 0.0, 1.0), labels


def in_python(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    bright = tf.py_function(brighten_slowly, [images], tf.float32)
    return tf.ensure_shape(bright, [BATCH_SIZE, PIXELS]), labels


def training_data(fixed: bool) -> tf.data.Dataset:
    generator = np.random.default_rng(seed=1)
    images = generator.random((BATCHES * BATCH_SIZE, PIXELS), dtype="float32")
    labels = (images.mean(axis=1) > 0.5).astype("int32")
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(
        BATCH_SIZE, drop_remainder=True
    )
    if fixed:
        return batches.map(brighten, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)
    return batches.map(in_python)


def train(logdir: str, fixed: bool) -> None:
    model = keras.Sequential(
        [
            keras.layers.Input((PIXELS,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(training_data(fixed), epochs=2, verbose=0, callbacks=[StallCallback(logdir)])


if __name__ == "__main__":
    known = argparse.ArgumentParser(description="A training script that waits for its input.")
    known.add_argument("--logdir", default="logs/stuck")
    known.add_argument("--fixed", action="store_true", help="make the change that ST001 advises")
    given = known.parse_args()
    train(given.logdir, given.fixed)
