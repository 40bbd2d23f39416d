"""Programs that learn as they should, each of a kind that is easily taken for a sick one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import Fault, Program, profiled
from tests.scenarios.faults.learnable import (
    CLASSES,
    FEATURES,
    blobs,
    classifier,
    dense,
    line,
    pictures,
    train,
    waves,
)
from tests.scenarios.workloads import from_logits


def plain_classifier(logdir: str) -> None:
    train(logdir, classifier(metrics=["accuracy"]), blobs(), validation_split=0.2)


def epochs_only(logdir: str) -> None:
    model = dense(last="softmax")
    model.compile("rmsprop", "sparse_categorical_crossentropy", metrics=["accuracy"])
    train(logdir, model, blobs(), update_freq="epoch")


def every_tenth_step(logdir: str) -> None:
    train(logdir, classifier(), blobs(), update_freq=10)


def several_steps_per_call(logdir: str) -> None:
    train(logdir, classifier(steps_per_execution=5), blobs())


def large_regression(logdir: str) -> None:
    """Prices: losses in the millions that fall."""
    model = dense(1, hidden=0)
    model.compile(keras.optimizers.SGD(0.02), "mse")
    train(logdir, model, line(scale=1000.0))


def high_rate_that_works(logdir: str) -> None:
    model = dense(hidden=0)
    x, y = blobs()
    model.compile(keras.optimizers.SGD(1.0), from_logits())
    train(logdir, model, (x / 4, y))


def fine_tuning(logdir: str) -> None:
    """Starts at a low loss and hardly moves: that is what it is for."""
    x, y = blobs()
    model = classifier(keras.optimizers.Adam(0.01))
    model.fit(x, y, epochs=5, verbose=0)
    model.compile(keras.optimizers.Adam(1e-5), from_logits(), metrics=["accuracy"])
    train(logdir, model, (x, y))


def frozen_base(logdir: str) -> None:
    """Transfer learning: all but the last layer are frozen."""
    model = dense(hidden=2, units=64)
    for layer in model.layers[:-1]:
        layer.trainable = False
    model.compile("adam", from_logits(), metrics=["accuracy"])
    train(logdir, model, blobs())


def warm_up_schedule(logdir: str) -> None:
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, decay_steps=120, warmup_target=0.005, warmup_steps=90
    )
    train(logdir, classifier(keras.optimizers.Adam(schedule)), blobs())


def warm_up_callback(logdir: str) -> None:
    """The rate grows tenfold from epoch to epoch, from next to nothing."""
    grow = keras.callbacks.LearningRateScheduler(lambda epoch: 1e-8 * 100.0**epoch)
    train(logdir, classifier(), blobs(), epochs=4, callbacks=(grow,))


def decay_to_zero(logdir: str) -> None:
    schedule = keras.optimizers.schedules.CosineDecay(0.01, decay_steps=60)
    train(logdir, classifier(keras.optimizers.Adam(schedule)), blobs(), epochs=1)


def imbalanced(logdir: str) -> None:
    """Nineteen of twenty belong to one class: accuracy begins high and stays."""
    x, y = blobs(classes=20)
    model = dense(1, last="sigmoid")
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    train(logdir, model, (x, (y == 0).astype("float32")[:, None]))


def weighted_classes(logdir: str) -> None:
    x, y = blobs(classes=20)
    model = dense(1, last="sigmoid")
    model.compile("adam", "binary_crossentropy")
    data = (x, (y == 0).astype("float32")[:, None])
    train(logdir, model, data, class_weight={0: 1.0, 1: 19.0})


def several_labels(logdir: str) -> None:
    x, _ = blobs()
    model = dense(8, last="sigmoid")
    model.compile("adam", "binary_crossentropy", metrics=["binary_accuracy"])
    train(logdir, model, (x, (x[:, :8] > 0).astype("float32")))


def tiny_data(logdir: str) -> None:
    """Three steps per epoch: nothing can be learned in nine steps at this rate."""
    train(logdir, classifier(keras.optimizers.SGD(0.001)), blobs(96))


def one_epoch(logdir: str) -> None:
    train(logdir, classifier(), blobs(), epochs=1)


def batches_of_one(logdir: str) -> None:
    """The loss of single examples scatters wildly around its fall."""
    train(logdir, classifier(keras.optimizers.SGD(0.01), hidden=1), blobs(250, spread=2.0), batch=1)


def autoencoder(logdir: str) -> None:
    x, _ = blobs()
    x = 0.05 * x
    model = dense(FEATURES, units=12)
    model.compile(keras.optimizers.Adam(0.003), "mse")
    train(logdir, model, (x, x))


def next_value(logdir: str) -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((24, 1)), keras.layers.LSTM(16), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mae")
    train(logdir, model, waves())


def convolution(logdir: str) -> None:
    """Raw pixels, scaled by the model itself."""
    x, y = pictures()
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input(x.shape[1:]),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Flatten(),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    train(logdir, model, (x, y))


def mixed_precision(logdir: str) -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        train(logdir, classifier(), blobs(), epochs=2)
    finally:
        keras.mixed_precision.set_global_policy("float32")


def two_outputs(logdir: str) -> None:
    x, y = blobs()
    keras.utils.set_random_seed(1)
    inputs = keras.Input((FEATURES,))
    hidden = keras.layers.Dense(32, activation="relu")(inputs)
    size = keras.layers.Dense(1, name="size")(hidden)
    kind = keras.layers.Dense(CLASSES, activation="softmax", name="kind")(hidden)
    model = keras.Model(inputs, {"size": size, "kind": kind})
    model.compile("adam", {"size": "mse", "kind": "sparse_categorical_crossentropy"})
    data = tf.data.Dataset.from_tensor_slices((x, {"size": x[:, :1] ** 2, "kind": y}))
    train(logdir, model, data.batch(32))


def words(logdir: str) -> None:
    """A bag of words over 500 of them."""
    random = np.random.default_rng(7)
    y = random.integers(0, 2, size=1920)
    x = random.integers(0, 250, size=(1920, 20)) + 250 * y[:, None] * (
        random.uniform(size=(1920, 20)) < 0.5
    )
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((20,), dtype="int32"),
            keras.layers.Embedding(500, 16),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    train(logdir, model, (x.astype("int32"), y.astype("float32")[:, None]))


class Adversaries(keras.Model):
    """Two losses that work against each other: neither is meant to fall."""

    def __init__(self) -> None:
        super().__init__()
        self.maker = dense(2, features=4)
        self.critic = dense(1, features=2)
        self.maker_optimizer = keras.optimizers.Adam(1e-3)
        self.critic_optimizer = keras.optimizers.Adam(1e-3)
        self.judge = keras.losses.BinaryCrossentropy(from_logits=True)

    def call(self, x: Any) -> Any:
        return self.maker(x)

    def train_step(self, real: Any) -> Any:
        noise = tf.random.normal((tf.shape(real)[0], 4))
        with tf.GradientTape() as critic_tape, tf.GradientTape() as maker_tape:
            said_real, said_made = self.critic(real), self.critic(self.maker(noise))
            critic_loss = self.judge(tf.ones_like(said_real), said_real) + self.judge(
                tf.zeros_like(said_made), said_made
            )
            maker_loss = self.judge(tf.ones_like(said_made), said_made)
        for tape, loss, net, optimizer in (
            (critic_tape, critic_loss, self.critic, self.critic_optimizer),
            (maker_tape, maker_loss, self.maker, self.maker_optimizer),
        ):
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        return {"critic_loss": critic_loss, "maker_loss": maker_loss}


def adversaries(logdir: str) -> None:
    keras.utils.set_random_seed(1)
    x = np.random.default_rng(8).normal(loc=2.0, size=(1920, 2)).astype("float32")
    model = Adversaries()
    model.compile()
    train(logdir, model, tf.data.Dataset.from_tensor_slices(x).batch(32))


def custom_loop(logdir: str) -> None:
    """Logs the loss of each step under its own name, and no epochs."""
    x, y = blobs()
    model, optimizer, loss_of = dense(hidden=2), keras.optimizers.Adam(0.003), from_logits()

    @tf.function
    def step(features: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(features))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    with profiled(logdir), tf.summary.create_file_writer(logdir).as_default():
        for number, (features, labels) in enumerate(data.repeat(3)):
            tf.summary.scalar("loss", step(features, labels), step=number)


def negative_loss(logdir: str) -> None:
    """A log-likelihood of densities: it falls through zero and on."""
    x, y = line()

    def negative_log_likelihood(truth: Any, prediction: Any) -> Any:
        mean, log_scale = prediction[:, :1], prediction[:, 1:]
        return tf.reduce_mean(log_scale + 0.5 * ((truth - mean) / tf.exp(log_scale)) ** 2)

    model = dense(2, hidden=0)
    model.compile(keras.optimizers.Adam(0.05), negative_log_likelihood)
    train(logdir, model, (x, 0.01 * y), epochs=4)


def _healthy(program: Callable[[str], None], name: str = "") -> Fault:
    description = (program.__doc__ or "").partition("\n")[0].rstrip(".")
    return Fault(
        name=f"healthy_{name or program.__name__}",
        finding=None,
        bucket="numerics",
        faulty=program,
        fixed=None,
        description=description or program.__name__.replace("_", " "),
        healthy=True,
    )


_PROGRAMS: tuple[Program, ...] = (
    plain_classifier, epochs_only, every_tenth_step, several_steps_per_call, large_regression,
    high_rate_that_works, fine_tuning, frozen_base, warm_up_schedule, warm_up_callback,
    decay_to_zero, imbalanced, weighted_classes, several_labels, tiny_data, one_epoch,
    batches_of_one, autoencoder, next_value, convolution, mixed_precision, two_outputs, words,
    adversaries, custom_loop, negative_loss,
)  # fmt: skip
HEALTHY = tuple(_healthy(program) for program in _PROGRAMS)
