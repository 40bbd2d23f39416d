"""Checks before the first epoch: what they find, and that training does not notice them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stall_analyzer.captures.capture_format import CheckName, CheckResult
from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.preflight import preflight
from tests.capture.capture_logs import records
from tests.capture.small_trainings import IS_KERAS_3, finish, keras, tf

layers = keras.layers
ROWS, FEATURES, CLASSES = 128, 6, 3
LOSS_OF_CLASSES = "sparse_categorical_crossentropy"
keras_3 = pytest.mark.skipif(not IS_KERAS_3, reason="Keras 3")


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(preflight, "SECONDS", 1e6)


def data() -> tuple[Any, Any]:
    """Three classes that can be told apart."""
    drawn = np.random.default_rng(0)
    x = drawn.normal(size=(ROWS, FEATURES)).astype("float32")
    return x, x[:, :CLASSES].argmax(1)


def classifier(*hidden: Any, loss: Any = LOSS_OF_CLASSES, **options: Any) -> Any:
    keras.utils.set_random_seed(1)
    usual = [layers.Dense(32, activation="relu", name="hidden")]
    last = layers.Dense(CLASSES, activation="softmax", name="last", dtype="float32")
    model = keras.Sequential([layers.Input((FEATURES,)), *(hidden or usual), last])
    model.compile(options.pop("optimizer", "adam"), loss, **options)
    return model


def checked(
    logdir: Path, model: Any, x: Any, y: Any = None, **options: Any
) -> dict[str, dict[str, Any]]:
    """Trains for one epoch, and returns the checks by name."""
    callback = StallCallback(logdir, preflight=True, profile=False, report=False)
    options = {"steps_per_epoch": 2, **options}
    model.fit(x, y, epochs=1, verbose=0, callbacks=[callback], **options)
    finish(logdir)
    [record] = records(logdir, "preflight")
    assert record["seconds"] > 0
    return {check["name"]: check for check in record["checks"]}


def results(checks: dict[str, dict[str, Any]]) -> set[str]:
    return {check["result"] for check in checks.values()}


def failed(checks: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The faults of the checks that failed."""
    return {n: c["fault"] for n, c in checks.items() if c["result"] == CheckResult.FAILED}


# ---------------------------------------------------------------- training does not notice


class Indexed(keras.utils.PyDataset if IS_KERAS_3 else keras.utils.Sequence):  # type: ignore[misc]
    """Batches with noise from its own generator, and from numpy's."""

    def __init__(self) -> None:
        if IS_KERAS_3:
            super().__init__()
        self.x, self.y = data()
        self.drawn = np.random.default_rng(3)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, n: int) -> tuple[Any, Any]:
        rows = slice(n * 32, n * 32 + 32)
        noise = self.drawn.normal(size=(32, 1)) + np.random.normal() + random.random()
        return (self.x[rows] + 0.1 * noise).astype("float32"), self.y[rows]


def generated() -> Iterator[tuple[Any, Any]]:
    """Keras reads ahead of the training, so it has its own random numbers."""
    x, y = data()
    drawn = np.random.default_rng(2)
    while True:
        rows = drawn.permutation(ROWS)[:32]
        yield x[rows], y[rows]


def pipeline() -> Any:
    return tf.data.Dataset.from_tensor_slices(data()).shuffle(100, seed=5).batch(16).prefetch(2)


def random_pipeline() -> Any:
    def noisy(x: Any, y: Any) -> Any:
        return x + tf.random.normal((FEATURES,), seed=4), y

    return tf.data.Dataset.from_tensor_slices(data()).map(noisy).shuffle(64, seed=5).batch(16)


def with_state() -> list[Any]:
    """Layers that draw random numbers, and one that keeps statistics."""
    return [
        layers.GaussianNoise(0.1),
        layers.Dense(16, activation="relu"),
        layers.BatchNormalization(),
        layers.Dropout(0.3),
    ]


def trained(model: Any, given: dict[str, Any], callbacks: list[Any]) -> tuple[Any, ...]:
    """Everything that a training leaves behind: weights, optimizer, losses, random numbers."""
    history = model.fit(**given, epochs=2, verbose=0, callbacks=callbacks).history
    optimizer = model.optimizer.variables
    optimizer = optimizer() if callable(optimizer) else optimizer
    values = [np.asarray(v) for v in (*model.variables, *optimizer)]
    after = random.random(), np.random.random(), float(tf.random.uniform(()))
    return values, {name: list(map(float, value)) for name, value in history.items()}, after


@pytest.mark.parametrize(
    ("given", "is_tried"),
    [
        (lambda: dict(zip("xy", data(), strict=True)), True),
        (lambda: dict(zip("xy", data(), strict=True), sample_weight=np.ones(ROWS)), True),
        (lambda: {"x": pipeline()}, True),
        (lambda: {"x": random_pipeline()}, False),
        (lambda: {"x": Indexed()}, True),
        (lambda: {"x": generated(), "steps_per_epoch": 4}, IS_KERAS_3),
    ],
    ids=["arrays", "weights", "tf.data", "random tf.data", "indexed", "generator"],
)
def test_training_is_the_same_to_the_last_bit(
    given: Callable[[], dict[str, Any]], is_tried: bool, tmp_path: Path
) -> None:
    def run(**options: Any) -> tuple[Any, ...]:
        keras.utils.set_random_seed(1)  # layers draw their seeds when they are made
        model = classifier(*with_state(), metrics=["accuracy"])
        callback = StallCallback(tmp_path, profile=False, report=False, **options)
        return trained(model, given(), [callback])

    plain, with_checks = run(), run(preflight=True)
    finish(tmp_path)
    [record] = records(tmp_path, "preflight")
    tried = [check["result"] != CheckResult.NOT_CHECKED for check in record["checks"]]
    assert any(tried) == is_tried, record
    for one, other in zip(plain[0], with_checks[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert plain[1:] == with_checks[1:]


@keras_3
@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"jit_compile": True}, {}])
def test_a_model_without_weights_before_its_first_step_gets_the_same_ones(
    options: dict[str, Any], tmp_path: Path
) -> None:
    def run(**preflight: Any) -> tuple[Any, ...]:
        keras.utils.set_random_seed(1)
        model = keras.Sequential([*with_state(), layers.Dense(CLASSES, activation="softmax")])
        model.compile("adam", LOSS_OF_CLASSES, **options)
        callback = StallCallback(tmp_path, profile=False, report=False, **preflight)
        return trained(model, dict(zip("xy", data(), strict=True)), [callback])

    plain, with_checks = run(), run(preflight=True)
    for one, other in zip(plain[0], with_checks[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert plain[1:] == with_checks[1:]


def test_it_adds_no_trace_and_no_time_to_the_epoch(tmp_path: Path) -> None:
    checked(tmp_path, classifier(), *data())
    [begin] = [r for r in records(tmp_path, "mark") if r["what"] == "fit_begin"]
    [record] = records(tmp_path, "preflight")
    assert record["ns"] <= begin["ns"]
    assert all(row["began_ns"] >= record["ns"] for row in records(tmp_path, "books"))


def test_there_are_no_checks_unless_they_are_asked_for(tmp_path: Path) -> None:
    callback = StallCallback(tmp_path, profile=False, report=False)
    classifier().fit(*data(), verbose=0, callbacks=[callback])
    finish(tmp_path)
    assert not records(tmp_path, "preflight")


# ---------------------------------------------------------------- healthy trainings


def regression(last: Any, loss: Any = "mse") -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(16, "relu"), last])
    model.compile("adam", loss)
    return model


def two_outputs() -> Any:
    keras.utils.set_random_seed(1)
    inputs = [layers.Input((FEATURES,), name="a"), layers.Input((FEATURES,), name="b")]
    joined = layers.Dense(16, "relu")(layers.Concatenate()(inputs))
    outputs = [
        layers.Dense(1, name="p")(joined),
        layers.Dense(CLASSES, "softmax", name="q")(joined),
    ]
    model = keras.Model(inputs, outputs)
    model.compile("adam", ["mse", LOSS_OF_CLASSES])
    return model


def test_a_healthy_classifier_passes_all_checks(tmp_path: Path) -> None:
    checks = checked(tmp_path, classifier(), *data())
    assert results(checks) == {CheckResult.PASSED}
    assert "1.0" in checks[CheckName.LOSS]["text"]  # ln 3, or a little less


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_healthy_regression_passes_whatever_its_scale(scale: float, tmp_path: Path) -> None:
    x, _ = data()
    checks = checked(tmp_path, regression(layers.Dense(1)), x, scale * x[:, :1])
    assert not failed(checks)


def test_several_inputs_and_outputs_are_tried_without_a_constant_answer(tmp_path: Path) -> None:
    x, y = data()
    checks = checked(tmp_path, two_outputs(), [x, x], [x[:, :1], y])
    assert not failed(checks) and checks[CheckName.OVERFIT]["result"] == CheckResult.PASSED
    assert checks[CheckName.LABELS]["result"] == CheckResult.NOT_CHECKED


def test_a_loss_that_is_negative_by_design_is_not_called_wrong(tmp_path: Path) -> None:
    def likelihood(y: Any, outputs: Any) -> Any:
        mean, log = outputs[:, :1], outputs[:, 1:]
        return tf.reduce_mean(log + 0.5 * tf.square((y - mean) / tf.exp(log))) - 5.0

    x, _ = data()
    checks = checked(tmp_path, regression(layers.Dense(2), likelihood), x, 0.05 * x[:, :1])
    assert not failed(checks)


def test_frozen_layers_and_layers_that_begin_at_zero_are_not_faults(tmp_path: Path) -> None:
    frozen = layers.Dense(16, activation="relu", trainable=False)
    last = layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([layers.Input((FEATURES,)), frozen, layers.Dense(16, "relu"), last])
    model.compile("adam", "mse")
    x, _ = data()
    assert not failed(checked(tmp_path, model, x, x[:, :1]))


def test_mixed_precision_is_tried(tmp_path: Path) -> None:
    hidden = layers.Dense(32, activation="relu", dtype="mixed_float16")
    checks = checked(tmp_path, classifier(hidden), *data())
    assert results(checks) == {CheckResult.PASSED}


def test_a_learning_rate_of_zero_does_not_matter_here(tmp_path: Path) -> None:
    model = classifier(optimizer=keras.optimizers.SGD(0.0))
    assert results(checked(tmp_path, model, *data())) == {CheckResult.PASSED}


def test_batches_are_as_large_as_the_training_makes_them(tmp_path: Path) -> None:
    small = checked(tmp_path / "small", classifier(), *data(), batch_size=2)
    assert "inputs 2×6" in small[CheckName.DATA]["text"]
    assert "16 examples" in small[CheckName.OVERFIT]["text"]
    large = checked(tmp_path / "large", classifier(), *data(), batch_size=128, steps_per_epoch=1)
    assert "inputs 64×6" in large[CheckName.DATA]["text"]


# ---------------------------------------------------------------- faults


def test_a_NaN_in_the_inputs_is_found(tmp_path: Path) -> None:
    x, y = data()
    x[::3, 2] = np.nan
    assert failed(checked(tmp_path, classifier(), x, y))[CheckName.DATA] == "not_finite"


def test_a_NaN_anywhere_in_arrays_is_found(tmp_path: Path) -> None:
    x, y = data()
    x[7, 2] = np.nan
    assert failed(checked(tmp_path, classifier(), x, y, batch_size=2)) == {
        CheckName.DATA: "not_finite"
    }


def test_inputs_that_are_all_zero_are_found(tmp_path: Path) -> None:
    x, y = data()
    faults = failed(checked(tmp_path, classifier(), 0 * x, y))
    assert faults[CheckName.DATA] == "same_inputs" and faults[CheckName.OVERFIT] == "cannot_fit"


def test_layers_that_are_dead_from_the_start_are_found(tmp_path: Path) -> None:
    dead = layers.Dense(
        16, activation="relu", name="dead", bias_initializer=keras.initializers.Constant(-99.0)
    )
    checks = checked(tmp_path, classifier(dead), *data())
    assert failed(checks)[CheckName.GRADIENTS] == "unreached"
    assert "dead" in checks[CheckName.GRADIENTS]["text"]
    assert failed(checks)[CheckName.OVERFIT] == "cannot_fit"


def test_a_branch_that_the_loss_does_not_depend_on_is_found(tmp_path: Path) -> None:
    inputs = layers.Input((FEATURES,))
    lost = tf.keras.layers.Dense(4, name="lost")(inputs)
    outputs = layers.Dense(1, name="last")(
        layers.Concatenate()([inputs, layers.Lambda(lambda t: 0 * t)(lost)])
    )
    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse")
    x, _ = data()
    checks = checked(tmp_path, model, x, x[:, :1])
    assert failed(checks) == {CheckName.GRADIENTS: "unreached"}
    assert "none in lost" in checks[CheckName.GRADIENTS]["text"]


def test_raw_outputs_for_a_loss_of_probabilities_are_found(tmp_path: Path) -> None:
    x, _ = data()
    model = regression(layers.Dense(1), "binary_crossentropy")
    assert failed(checked(tmp_path, model, 5 * x, x[:, :1] > 0))[CheckName.OUTPUTS] == "outputs"


def test_labels_that_the_last_layer_cannot_reach_are_found(tmp_path: Path) -> None:
    x, _ = data()
    model = regression(layers.Dense(1, activation="tanh"))
    faults = failed(checked(tmp_path, model, x, 50 + 20 * x[:, :1]))
    assert faults[CheckName.LABELS] == "labels" and faults[CheckName.OVERFIT] == "cannot_fit"


def test_labels_of_one_class_are_found(tmp_path: Path) -> None:
    x, y = data()
    assert failed(checked(tmp_path, classifier(), x, 0 * y)) == {CheckName.LABELS: "labels"}


# ---------------------------------------------------------------- what cannot be tried


def test_a_custom_train_step_is_not_tried_but_its_batch_is_looked_at(tmp_path: Path) -> None:
    class Own(keras.Model):
        def train_step(self, data: Any) -> Any:
            return {"loss": tf.constant(0.0)}

    inputs = layers.Input((FEATURES,))
    model = Own(inputs, layers.Dense(1)(inputs))
    model.compile("adam", "mse")
    x, _ = data()
    checks = checked(tmp_path, model, x, x[:, :1])
    assert checks[CheckName.DATA]["result"] == CheckResult.PASSED
    assert "train_step" in checks[CheckName.OVERFIT]["text"]


def test_a_distribution_strategy_is_left_alone(tmp_path: Path) -> None:
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = classifier()
    checks = checked(tmp_path, model, *data())
    assert results(checks) == {CheckResult.NOT_CHECKED}
    assert "MirroredStrategy" in checks[CheckName.LOSS]["text"]
