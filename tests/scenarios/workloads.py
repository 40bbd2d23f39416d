"""Small models and data sets that the scenarios share."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

FEATURES = 64
CLASSES = 10


def arrays(rows: int, features: int = FEATURES) -> tuple[Any, Any]:
    random = np.random.default_rng(seed=1)
    x = random.normal(size=(rows, features)).astype("float32")
    y = random.integers(0, CLASSES, size=rows).astype("int32")
    return x, y


def batches(steps: int, batch: int = 64, features: int = FEATURES) -> tf.data.Dataset:
    """Ready batches: hardly any input cost."""
    x, y = arrays(batch, features)
    one = tf.data.Dataset.from_tensors((x, y))
    return one.cache().repeat(steps).prefetch(2)


def rows(count: int, features: int = FEATURES) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays(count, features))


def dense_model(
    layers: int = 2,
    units: int = 256,
    features: int = FEATURES,
    activation: str = "relu",
    optimizer: Any = "sgd",
    extra: list[keras.layers.Layer] | None = None,
    **compile_options: Any,
) -> keras.Model:
    keras.utils.set_random_seed(1)
    hidden = [keras.layers.Dense(units, activation=activation) for _ in range(layers)]
    model = keras.Sequential(
        [keras.layers.Input((features,)), *(extra or []), *hidden, keras.layers.Dense(CLASSES)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss=compile_options.pop("loss", loss), **compile_options)
    return model


def signature(features: int = FEATURES, batch: int | None = None) -> tuple[Any, Any]:
    return (
        tf.TensorSpec((batch, features), tf.float32),
        tf.TensorSpec((batch,), tf.int32),
    )


def training_step(model: keras.Model) -> Any:
    """One step of a custom loop, not yet a tf.function."""

    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step
