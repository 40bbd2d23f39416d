"""What the probe measures, compared with numbers worked out by hand."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from stall_analyzer.captures.capture_format import Tag
from tb_stall_plugin.capture.training.all_losses import told
from tb_stall_plugin.capture.training.probe import Probe, probe_of
from tests.capture.small_trainings import FEATURES, IS_KERAS_3, keras, small_model, tf

RATE = 0.1
X = np.random.default_rng(0).normal(size=(4, FEATURES)).astype("float32")
Y = X[:, :1]


def measured(model: Any, x: Any = X, y: Any = Y, steps: int = 1) -> dict[str, float]:
    """What was measured in the last of these steps."""
    probe = Probe(model.optimizer)
    probe.put_in()
    for _ in range(steps):
        model.train_on_batch(x, y)
        values = probe.after_step(was_due=True, next_is_due=True)
    probe.take_out()
    return values | told(probe.taken_losses()[-1:])


def gradients(model: Any) -> dict[str, Any]:
    """Gradients by `layer/weight`, for the loss on X and Y."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(X) - Y))
    found = tape.gradient(loss, model.trainable_variables)
    names = ["first/kernel", "first/bias", "last/kernel", "last/bias"]
    return {"loss": float(loss), **dict(zip(names, map(np.asarray, found), strict=True))}


def test_loss_and_gradients() -> None:
    model = small_model(optimizer=keras.optimizers.SGD(RATE))
    expected = gradients(model)
    values = measured(model)
    norm = {name: np.linalg.norm(value) for name, value in expected.items()}
    assert values[Tag.LOSS] == pytest.approx(expected["loss"], rel=1e-5)
    assert values[Tag.LEARNING_RATE] == pytest.approx(RATE)
    assert values[Tag.GRADIENT_NORM_OF + "first"] == pytest.approx(norm["first/kernel"], rel=1e-5)
    assert values[Tag.GRADIENT_NORM_OF + "last"] == pytest.approx(norm["last/kernel"], rel=1e-5)
    both = np.hypot(norm["first/kernel"], norm["last/kernel"])
    assert values[Tag.GRADIENT_NORM] == pytest.approx(both, rel=1e-5)


def test_names_of_inputs_cause_no_warnings(caplog: pytest.LogCaptureFixture) -> None:
    tf.get_logger().addHandler(caplog.handler)
    try:
        assert measured(small_model())
    finally:
        tf.get_logger().removeHandler(caplog.handler)
    assert "node name" not in caplog.text


def test_updates_from_the_second_step_on() -> None:
    model = small_model(optimizer=keras.optimizers.SGD(RATE))
    assert Tag.UPDATE_RATIO_OF + "first" not in measured(model)
    model = small_model(optimizer=keras.optimizers.SGD(RATE))
    model.train_on_batch(X, Y)
    gradient, kernel = gradients(model)["first/kernel"], model.get_weights()[0]
    values = measured(small_model(optimizer=keras.optimizers.SGD(RATE)), steps=2)
    ratio = RATE * np.linalg.norm(gradient) / np.linalg.norm(kernel)
    assert values[Tag.UPDATE_RATIO_OF + "first"] == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize("use_bias", [True, False])
def test_units_that_a_negative_bias_has_turned_off_are_dead(use_bias: bool) -> None:
    model = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(8, use_bias=use_bias, name="hidden"),
            keras.layers.Lambda(lambda x: tf.nn.relu(x + tf.constant([-100.0] * 6 + [100.0] * 2))),
            keras.layers.Dense(1, name="last"),
        ]
    )
    model.compile("sgd", "mse")
    values = measured(model)
    assert values[Tag.DEAD_UNITS_OF + "hidden"] == pytest.approx(6 / 8)
    assert values[Tag.DEAD_UNITS_OF + "last"] == 0


def test_a_large_weight_is_judged_by_a_sample() -> None:
    model = keras.Sequential([keras.layers.Input((300,)), keras.layers.Dense(700, name="wide")])
    model.compile(keras.optimizers.SGD(RATE), "mse")
    x = np.random.default_rng(1).normal(size=(8, 300)).astype("float32")
    probe = Probe(model.optimizer)
    probe.put_in()
    for _ in range(2):
        before = model.get_weights()[0]
        model.train_on_batch(x, np.zeros((8, 700), "float32"))
        values = probe.after_step(was_due=True, next_is_due=True)
    change = model.get_weights()[0] - before
    ratio = np.linalg.norm(change) / np.linalg.norm(before)
    assert values[Tag.UPDATE_RATIO_OF + "wide"] == pytest.approx(ratio, rel=0.1)


def test_an_embedding_has_a_gradient_but_neither_updates_nor_units() -> None:
    model = keras.Sequential(
        [
            keras.layers.Input((3,), dtype="int32"),
            keras.layers.Embedding(5000, 4, name="words"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1, name="last"),
        ]
    )
    model.compile(keras.optimizers.SGD(RATE), "mse")
    values = measured(model, np.array([[7, 8, 4000]] * 2), np.ones((2, 1), "float32"), steps=2)
    assert values[Tag.GRADIENT_NORM_OF + "words"] > 0
    assert values[Tag.UPDATE_RATIO_OF + "last"] > 0
    assert Tag.UPDATE_RATIO_OF + "words" not in values
    assert Tag.DEAD_UNITS_OF + "words" not in values


def test_a_schedule_shows_the_rate_of_this_step() -> None:
    schedule = keras.optimizers.schedules.PolynomialDecay(0.5, 10)
    values = measured(small_model(optimizer=keras.optimizers.SGD(schedule)))
    assert values[Tag.LEARNING_RATE] == pytest.approx(0.5, rel=1e-3)


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 cannot accumulate gradients")
def test_a_step_that_only_accumulates_gradients_has_no_update_ratio() -> None:
    optimizer = keras.optimizers.SGD(RATE, gradient_accumulation_steps=2)
    gathers = measured(small_model(optimizer=optimizer), steps=3)
    assert Tag.GRADIENT_NORM_OF + "first" in gathers
    assert Tag.UPDATE_RATIO_OF + "first" not in gathers
    optimizer = keras.optimizers.SGD(RATE, gradient_accumulation_steps=2)
    applies = measured(small_model(optimizer=optimizer), steps=4)
    assert applies[Tag.UPDATE_RATIO_OF + "first"] > 0


def test_a_step_that_is_not_due_leaves_nothing() -> None:
    model = small_model()
    probe = Probe(model.optimizer)
    probe.put_in()
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=False)
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=True) == {}  # there is nothing new
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=True)
    probe.take_out()


def test_a_step_traced_with_the_probe_measures_only_while_the_probe_is_in() -> None:
    model = small_model()
    probe = Probe(model.optimizer)
    probe.put_in()
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=True)
    probe.take_out()
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=False) == {}
    probe.put_in()
    model.train_on_batch(X, Y)
    assert probe.after_step(was_due=True, next_is_due=True)
    probe.take_out()


def test_the_probe_of_an_optimizer_lives_as_long_as_the_optimizer() -> None:
    model = small_model()
    probe = weakref.ref(probe_of(model.optimizer))
    gc.collect()
    assert probe() is probe_of(model.optimizer)  # steps that were traced with it use its variables
    optimizer = weakref.ref(model.optimizer)
    del model
    gc.collect()
    assert optimizer() is None and probe() is None


class OwnOptimizer:
    """An optimizer that is not Keras's own."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def apply(self, *arguments: Any, **named: Any) -> None:
        self.calls.append((*arguments, named))

    def scale_loss(self, *, value: float) -> float:
        return 2 * value


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(([1.0], ["w"], "a third"), {}), ((), {"gradients": [1.0], "weights": ["w"]}), ((), {})],
)
def test_an_optimizer_with_other_arguments_gets_what_it_was_given(
    arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    optimizer = OwnOptimizer()
    probe = Probe(optimizer)
    probe.put_in()
    optimizer.apply(*arguments, **named)
    assert optimizer.scale_loss(value=3.0) == 6.0
    assert optimizer.calls == [(*arguments, named)]
    probe.take_out()


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has apply_gradients only")
def test_gradients_that_can_be_read_only_once_are_left_to_the_optimizer() -> None:
    optimizer = OwnOptimizer()
    probe = Probe(optimizer)
    probe.put_in()
    optimizer.apply(iter([1.0]), ["w"])
    ((gradients, *_),) = optimizer.calls
    assert list(gradients) == [1.0]


def test_a_nan_loss_is_recorded_as_such() -> None:
    values = measured(small_model(), X, Y * np.nan)
    assert np.isnan(values[Tag.LOSS])
    assert np.isnan(values[Tag.GRADIENT_NORM_OF + "first"])


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 cannot copy its optimizers")
def test_a_copy_of_a_probed_optimizer_is_not_probed() -> None:
    model = small_model()
    probe = Probe(model.optimizer)
    probe.put_in()
    copied = copy.deepcopy(model.optimizer)
    variable = tf.Variable([1.0])
    copied.apply_gradients([(tf.constant([1.0]), variable)])
    assert float(variable[0]) != 1.0
    assert probe.layers == []
    probe.take_out()
