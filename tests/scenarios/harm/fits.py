"""Kinds of `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.scenarios.harm.capture import Capture, kind
from tests.scenarios.harm.small import BATCH, FEATURES, data, dataset, fit, keras, layers, model, tf


@kind("fit, with validation")
def plain(capture: Capture) -> None:
    of = model()
    fit(of, capture.callbacks(), validation_split=0.25)
    capture.weights(of)


@kind("the optimizer accumulates gradients")
def accumulating_optimizer(capture: Capture) -> None:
    of = model(optimizer=keras().optimizers.Adam(0.01, gradient_accumulation_steps=3))
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("moving averages of the weights (EMA)")
def moving_averages(capture: Capture) -> None:
    of = model(optimizer=keras().optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=5))
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("clipped gradients, by norm and by value")
def clipping(capture: Capture) -> None:
    for options in ({"clipnorm": 0.1}, {"global_clipnorm": 0.1}, {"clipvalue": 0.01}):
        of = model(optimizer=keras().optimizers.SGD(0.1, **options))
        fit(of, capture.callbacks())
        capture.weights(of)


@kind("mixed precision, with a dynamic loss scale")
def loss_scaling(capture: Capture) -> None:
    keras().mixed_precision.set_global_policy("mixed_float16")
    scaled = keras().mixed_precision.LossScaleOptimizer(
        keras().optimizers.Adam(0.01), initial_scale=2.0**40, dynamic_growth_steps=5
    )
    of = model(optimizer=scaled)
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("bfloat16, and float64")
def other_floats(capture: Capture) -> None:
    for policy in ("bfloat16", "float64"):
        keras().config.set_dtype_policy(policy)
        of = model()
        fit(of, capture.callbacks())
        capture.result(np.asarray(weight, "float64") for weight in of.get_weights())


@kind("jit_compile=True")
def jit(capture: Capture) -> None:
    of = model(jit_compile=True)
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("run_eagerly=True")
def eager(capture: Capture) -> None:
    of = model(run_eagerly=True)
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("steps_per_execution=4")
def several_steps_a_call(capture: Capture) -> None:
    of = model(steps_per_execution=4)
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("MirroredStrategy, two replicas")
def mirrored(capture: Capture) -> None:
    cpu = tf().config.list_physical_devices("CPU")[0]
    halves = [tf().config.LogicalDeviceConfiguration()] * 2
    tf().config.set_logical_device_configuration(cpu, halves)
    with tf().distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        of = model()
    of.fit(dataset(), epochs=2, verbose=0, callbacks=capture.callbacks())
    capture.weights(of)


@kind("a subclassed model")
def subclassed(capture: Capture) -> None:
    class Subclassed(keras().Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = layers()

        def call(self, x: Any, training: bool = False) -> Any:
            first, dropout, last = self.parts
            return last(dropout(first(x), training=training))

    of = Subclassed()
    of.compile("adam", "mse")
    fit(of, capture.callbacks())
    capture.weights(of)


def _own_step(self: Any, batch: Any) -> dict[str, Any]:
    x, y = batch
    with tf().GradientTape() as tape:
        loss = tf().reduce_mean(tf().square(self(x, training=True) - y))
    weights = self.trainable_variables
    self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return {"loss": loss}


@kind("a custom train_step")
def own_train_step(capture: Capture) -> None:
    owned = type("Owned", (keras().Sequential,), {"train_step": _own_step})
    of = owned([keras().layers.Input((FEATURES,)), *layers()])
    of.compile("adam", "mse")
    fit(of, capture.callbacks())
    capture.weights(of)


@kind("several optimizers in one train_step")
def several_optimizers(capture: Capture) -> None:
    class Adversarial(keras().Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = (keras().layers.Dense(FEATURES) for _ in range(2))
            self.second = keras().optimizers.SGD(0.01)

        def train_step(self, batch: Any) -> dict[str, Any]:
            x, _ = batch
            with tf().GradientTape(persistent=True) as tape:
                made = self.one(x)
                first = tf().reduce_mean(tf().square(made - x))
                second = tf().reduce_mean(tf().abs(self.other(made)))
            for loss, part, optimizer in (
                (first, self.one, self.optimizer),
                (second, self.other, self.second),
            ):
                weights = part.trainable_variables
                pairs = zip(tape.gradient(loss, weights), weights, strict=True)
                optimizer.apply_gradients(pairs)
            return {"first": first, "second": second}

    keras().utils.set_random_seed(1)
    of = Adversarial()
    of.compile("adam")
    fit(of, capture.callbacks())
    capture.result(weight for part in (of.one, of.other) for weight in part.get_weights())


@kind("LSTM and GRU over sequences")
def recurrent(capture: Capture) -> None:
    k = keras()
    k.utils.set_random_seed(1)
    parts = [k.layers.LSTM(6, return_sequences=True), k.layers.GRU(5), k.layers.Dense(1)]
    of = k.Sequential([k.layers.Input((None, 4)), *parts])
    of.compile("adam", "mse")
    x, y = data()
    of.fit(x.reshape(-1, 2, 4), y, batch_size=BATCH, verbose=0, callbacks=capture.callbacks())
    capture.weights(of)


@kind("embeddings, with sparse gradients")
def embeddings(capture: Capture) -> None:
    k = keras()
    k.utils.set_random_seed(1)
    parts = [k.layers.Embedding(50, 4), k.layers.GlobalAveragePooling1D(), k.layers.Dense(1)]
    of = k.Sequential([k.layers.Input((6,), dtype="int32"), *parts])
    of.compile("adagrad", "mse")
    words = np.random.default_rng(0).integers(0, 50, (96, 6)).astype("int32")
    of.fit(words, data()[1], batch_size=BATCH, verbose=0, callbacks=capture.callbacks())
    capture.weights(of)


@kind("convolutions, batch normalization, weight decay, a schedule")
def convolutions(capture: Capture) -> None:
    k = keras()
    k.utils.set_random_seed(1)
    parts = [
        k.layers.Conv2D(4, 3), k.layers.BatchNormalization(), k.layers.ReLU(),
        k.layers.DepthwiseConv2D(2), k.layers.Flatten(), k.layers.Dense(3, activation="softmax"),
    ]  # fmt: skip
    of = k.Sequential([k.layers.Input((8, 8, 1)), *parts])
    rate = k.optimizers.schedules.CosineDecay(0.01, 20)
    of.compile(k.optimizers.AdamW(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    random = np.random.default_rng(0)
    x, y = random.normal(size=(48, 8, 8, 1)).astype("float32"), random.integers(0, 3, 48)
    options = {"batch_size": BATCH, "verbose": 0, "class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}
    of.fit(x, y, callbacks=capture.callbacks(), **options)
    capture.weights(of)


@kind("several inputs and outputs")
def several_outputs(capture: Capture) -> None:
    k = keras()
    k.utils.set_random_seed(1)
    one, two = k.Input((FEATURES,), name="one"), k.Input((FEATURES,), name="two")
    both = k.layers.Concatenate()([one, two])
    outputs = {"p": k.layers.Dense(1, name="p")(both), "q": k.layers.Dense(2, name="q")(both)}
    of = k.Model({"one": one, "two": two}, outputs)
    of.compile("adam", {"p": "mse", "q": "mae"}, loss_weights={"p": 1.0, "q": 0.5})
    x, y = data()
    of.fit(
        {"one": x, "two": -x},
        {"p": y, "q": np.concatenate([y, y], 1)},
        batch_size=BATCH,
        verbose=0,
        callbacks=capture.callbacks(),
    )
    capture.weights(of)


@kind("batches of different shapes: retraced as often as without a capture")
def retraces(capture: Capture) -> None:
    k = keras()
    k.utils.set_random_seed(1)
    of = k.Sequential([k.layers.Dense(1)])
    of.compile("sgd", "mse", jit_compile=False)

    def batches() -> Any:
        for size in (3, 5, 3, 7, 2, 5):
            yield np.ones((size, 4), "float32"), np.ones((size, 1), "float32")

    of.build((None, 4))
    callbacks = capture.callbacks()
    for _ in range(2):
        of.fit(batches(), verbose=0, callbacks=callbacks)
    of.predict(np.ones((2, 4), "float32"), verbose=0)
    capture.weights(of)


@kind(
    "tf_keras (Keras 2)",
    needs="tf_keras",
    environment=(("TF_USE_LEGACY_KERAS", "1"),),
    says=("is slow compared to the batch time",),  # of hooks, where steps take microseconds
)
def legacy_keras(capture: Capture) -> None:
    for options in ({}, {"jit_compile": True}, {"run_eagerly": True}):
        of = model(**options)
        fit(of, capture.callbacks())
        capture.weights(of)
