"""Programs whose steps run and teach the model nothing, or less than they could."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.scenarios.faults.base import Fault, Program, forms
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
from tests.scenarios.faults.numerics_healthy import HEALTHY
from tests.scenarios.workloads import from_logits

# ---------------------------------------------------------------- the learning rate


@forms
def trained_by(logdir: str, /, optimizer: Any, **train_options: Any) -> None:
    train(logdir, classifier(optimizer(), metrics=["accuracy"]), blobs(), **train_options)


@forms
def regression(logdir: str, optimizer: Any) -> None:
    model = dense(1, hidden=1)
    model.compile(optimizer(), "mse")
    train(logdir, model, line())


@forms
def full_batch(logdir: str, rate: float) -> None:
    """Gradient descent on one batch: above a certain rate each step jumps across the valley."""
    x, _ = line(256, features=4)
    y = (x[:, :1] > 0).astype("float32") * 2 - 1
    model = dense(1, hidden=0, features=4)
    model.compile(keras.optimizers.SGD(rate), "huber")
    data = tf.data.Dataset.from_tensors((8 * x, y)).repeat(60)
    train(logdir, model, data)


@forms
def wide_feature(logdir: str, scale: float) -> None:
    """One feature with values around 10: the default rate of SGD is just too long a step for it."""
    x, _ = line(256, features=1)
    x *= scale / np.sqrt(np.mean(x**2))
    model = dense(1, hidden=0, features=1)
    model.compile(keras.optimizers.SGD(0.01), "mse")
    train(logdir, model, tf.data.Dataset.from_tensors((x, 3 * x / scale)).repeat(60))


# ---------------------------------------------------------------- losses that are not numbers


@forms
def log_loss(logdir: str, epsilon: float) -> None:
    """A cross-entropy by hand. As the model grows sure, 1 - p becomes 0, and 0 * log(0) is NaN."""

    def cross_entropy(y: Any, p: Any) -> Any:
        losses = y * tf.math.log(p + epsilon) + (1 - y) * tf.math.log(1 - p + epsilon)
        return -tf.reduce_mean(losses)

    model = dense(1, last="sigmoid", hidden=2)
    model.compile(keras.optimizers.Adam(0.01), cross_entropy)
    train(logdir, model, two_classes(), epochs=2)


@forms
def missing_values(logdir: str, cleaned: bool, activation: str = "tanh") -> None:
    """Behind relu the loss stays a number: the weights are NaN, and the units are 0."""
    x, y = blobs()
    x[700, 3] = np.nan
    if cleaned:
        x = np.nan_to_num(x)
    model = dense(hidden=2, activation=activation)
    model.compile("adam", from_logits())
    train(logdir, model, (x, y), shuffle=False, epochs=2)


@forms
def recurrent(logdir: str, layer: Any) -> None:
    """The value that comes after 40 others."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((40, 1)), layer(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    train(logdir, model, waves(length=40), epochs=2)


def multiplying_rnn() -> keras.layers.Layer:
    start = keras.initializers.Identity(1.1)
    return keras.layers.SimpleRNN(16, activation="linear", recurrent_initializer=start)


def gated_rnn() -> keras.layers.Layer:
    return keras.layers.GRU(16)


# ---------------------------------------------------------------- loss and last layer


def two_classes() -> tuple[Any, Any]:
    x, y = blobs(classes=2)
    return x, y.astype("float32")[:, None]


@forms
def head(
    logdir: str, units: int, last: str | None, loss: Any, data: Any = blobs, rate: float = 0.003
) -> None:
    model = dense(units, last=last)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
    train(logdir, model, data())


# ---------------------------------------------------------------- inputs, labels, weights


@forms
def picture_classifier(logdir: str, scaled: bool) -> None:
    x, y = pictures()
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input(x.shape[1:]),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(CLASSES),
        ]
    )
    model.compile("adam", from_logits(), metrics=["accuracy"])
    train(logdir, model, (x / 255 if scaled else x, y))


@forms
def labels(logdir: str, shuffled: bool) -> None:
    x, y = blobs(3840)
    if shuffled:
        y = np.random.default_rng(5).permutation(y)
    model = classifier(hidden=0, metrics=["accuracy"])
    model.layers[-1].kernel.assign(0 * model.layers[-1].kernel)
    train(logdir, model, (x, y))


@forms
def layers_frozen(logdir: str, frozen: bool) -> None:
    model = dense(hidden=2)
    for layer in model.layers:
        layer.trainable = not frozen
    model.compile("adam", from_logits(), metrics=["accuracy"])
    train(logdir, model, blobs())


class WithGradientNorm(keras.Sequential):
    """Logs the norm of the gradient of its first layer's kernel."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss, "gradient_norm": tf.norm(gradients[0])}


@forms
def deep(logdir: str, activation: str, initializer: str) -> None:
    keras.utils.set_random_seed(1)
    hidden = [
        keras.layers.Dense(32, activation=activation, kernel_initializer=initializer)
        for _ in range(10)
    ]
    model = WithGradientNorm([keras.Input((FEATURES,)), *hidden, keras.layers.Dense(CLASSES)])
    model.compile(keras.optimizers.SGD(0.05), from_logits())
    train(logdir, model, blobs())


# ---------------------------------------------------------------- loss scaling, checks


@forms
def loss_scale(logdir: str, initial: float) -> None:
    """Loss scaling that starts far too high: each overflow skips an update and halves the scale."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        inner = keras.optimizers.SGD(0.01)
        optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=initial)
        train(logdir, classifier(optimizer), blobs(), epochs=2)
    finally:
        keras.mixed_precision.set_global_policy("float32")


@forms
def numerics_checks(logdir: str, enabled: bool) -> None:
    if enabled:
        tf.debugging.enable_check_numerics()
    train(logdir, classifier(hidden=4, units=64), blobs(), epochs=2)
    if enabled:
        tf.debugging.disable_check_numerics()


def adam(rate: float) -> Any:
    return lambda: keras.optimizers.Adam(rate)


def sgd(rate: float, momentum: float = 0.0) -> Any:
    return lambda: keras.optimizers.SGD(rate, momentum=momentum)


# A run that still learns something is judged by its time, and these short ones mostly compile.
LEARNS = "compile"


def _fault(
    name: str,
    finding: str,
    faulty: Program,
    fixed: Program,
    description: str,
    bucket: str = "numerics",
) -> Fault:
    return Fault(name, finding, bucket, faulty, fixed, description)


FAULTS = (
    _fault(
        "rate_1e_8_adam", "ST304", trained_by(adam(1e-8)), trained_by(adam(1e-3)),
        "Adam at 1e-8: the weights stay where they began",
    ),
    _fault(
        "rate_1e_8_adam_epochs_only", "ST304",
        trained_by(adam(1e-8), update_freq="epoch"), trained_by(adam(1e-3), update_freq="epoch"),
        "the same, with nothing logged but the epochs",
    ),
    _fault(
        "rate_1e_9_sgd_regression", "ST304", regression(sgd(1e-9)), regression(sgd(1e-2)),
        "SGD at 1e-9 on a regression",
    ),
    _fault(
        "rate_10_sgd", "ST303", trained_by(sgd(10.0)), trained_by(sgd(0.05)),
        "SGD at 10: the loss ends above where it began",
    ),
    _fault(
        "rate_10_adam", "ST303", trained_by(adam(10.0)), trained_by(adam(1e-3)),
        "Adam at 10: each weight jumps by 10 in each step",
    ),
    _fault(
        "rate_1_adam", "ST303", trained_by(adam(1.0)), trained_by(adam(1e-3)),
        "Adam at 1, a thousand times its default",
        LEARNS,
    ),
    _fault(
        "rate_1_sgd_momentum", "ST303", trained_by(sgd(1.0, 0.95)), trained_by(sgd(0.01, 0.9)),
        "SGD at 1 with momentum 0.95, which multiplies it by 20",
    ),
    _fault(
        "rate_across_the_valley", "ST306", full_batch(0.4), full_batch(0.02),
        "gradient descent that jumps from one side of the valley to the other",
        LEARNS,
    ),
    _fault(
        "log_of_zero", "ST301", log_loss(0.0), log_loss(1e-7),
        "a loss by hand takes the logarithm of a probability that is zero",
    ),
    _fault(
        "nan_in_data", "ST301", missing_values(False), missing_values(True),
        "one missing value in the data",
    ),
    _fault(
        "nan_behind_relu", "ST305", missing_values(False, "relu"), missing_values(True, "relu"),
        "one missing value in the data, which relu hides from the loss",
    ),
    _fault(
        "unscaled_feature", "ST302", wide_feature(10.15), wide_feature(1.0),
        "a feature of about 10: the loss grows by a tenth in each step",
    ),
    _fault(
        "exploding_rnn", "ST301", recurrent(multiplying_rnn), recurrent(gated_rnn),
        "a linear recurrence that grows over 40 steps",
    ),
    _fault(
        "softmax_on_one_unit", "ST307",
        head(1, "softmax", "binary_crossentropy", two_classes),
        head(1, "sigmoid", "binary_crossentropy", two_classes),
        "softmax over a single unit is always 1",
    ),
    _fault(
        "logits_as_probabilities", "ST307",
        head(CLASSES, None, "sparse_categorical_crossentropy"),
        head(CLASSES, None, from_logits()),
        "no activation, and a loss that expects probabilities",
        LEARNS,
    ),
    _fault(
        "categorical_on_one_unit", "ST307",
        head(1, "sigmoid", "categorical_crossentropy", two_classes),
        head(1, "sigmoid", "binary_crossentropy", two_classes),
        "a loss over classes, and a single unit",
    ),
    _fault(
        "relu_before_log_loss", "ST307",
        head(1, "relu", "binary_crossentropy", two_classes),
        head(1, "sigmoid", "binary_crossentropy", two_classes),
        "a relu gives zeros and values above one to a loss of probabilities",
        LEARNS,
    ),
    _fault(
        "unscaled_pixels", "ST309", picture_classifier(False), picture_classifier(True),
        "pixels from 0 to 255 into a dense network",
        LEARNS,
    ),
    _fault(
        "random_labels", "ST305", labels(True), labels(False),
        "labels that have nothing to do with the data",
    ),
    _fault(
        "everything_frozen", "ST305", layers_frozen(True), layers_frozen(False),
        "no layer is trainable",
    ),
    _fault(
        "deep_sigmoid", "ST310",
        deep("sigmoid", "glorot_uniform"), deep("relu", "he_normal"),
        "ten sigmoid layers: the gradient of the first one vanishes",
    ),
    _fault(
        "loss_scale_overflow", "ST308", loss_scale(2.0**60), loss_scale(2.0**15),
        "a loss scale that overflows for most of the first epoch",
        LEARNS,
    ),
    _fault(
        "check_numerics", "ST311", numerics_checks(True), numerics_checks(False),
        "tf.debugging.enable_check_numerics left on",
        LEARNS,
    ),
    *HEALTHY,
)  # fmt: skip
