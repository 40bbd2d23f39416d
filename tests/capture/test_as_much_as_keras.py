"""A capture tells the analyzer as much about a training as Keras's TensorBoard callback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from stall_analyzer.signals.numerics.learning import LearningSignals, learning_signals
from tb_stall_plugin import StallCallback, watch
from tests.capture import capture_logs
from tests.capture.small_trainings import FEATURES, finish, keras, tf

ROWS, BATCH, EPOCHS = 48, 4, 3
STEPS = ROWS // BATCH
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(ROWS, FEATURES)).astype("float32")
CLASSES = RANDOM.integers(0, 3, ROWS)
TARGETS = X[:, :1]

Program = Callable[[Any], None]


def layers(units: int, activation: str | None = None) -> list[Any]:
    return [
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(units, activation=activation),
    ]


def classifier(callback: Any) -> None:
    model = keras.Sequential(layers(3, "softmax"))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    fit(model, CLASSES, callback, validation_split=0.25)


def regression_with_a_schedule(callback: Any) -> None:
    entry = keras.layers.Input((FEATURES,))
    model = keras.Model(entry, keras.layers.Dense(1)(entry))
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model.compile(keras.optimizers.SGD(rate), keras.losses.Huber(), metrics=["mae"])
    fit(model, TARGETS, callback, validation_data=(X, TARGETS))


def two_outputs(callback: Any) -> None:
    entry = keras.layers.Input((FEATURES,))
    outputs = [keras.layers.Dense(1, name=name)(entry) for name in ("one", "other")]
    model = keras.Model(entry, outputs)
    model.compile("sgd", {"one": "mse", "other": "mae"})
    fit(model, {"one": TARGETS, "other": TARGETS}, callback)


def several_steps_at_once(callback: Any) -> None:
    model = keras.Sequential(layers(1))
    model.compile("sgd", "mse", steps_per_execution=4)
    fit(model, TARGETS, callback)


class WithOwnStep(keras.Model):
    """Tells Keras only the loss that it returns."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(list(zip(gradients, self.trainable_variables, strict=True)))
        return {"loss": loss}


def own_train_step(callback: Any) -> None:
    entry = keras.layers.Input((FEATURES,))
    model = WithOwnStep(entry, keras.layers.Dense(1)(entry))
    model.compile("sgd", "mse")
    fit(model, TARGETS, callback)


PROGRAMS = [classifier, regression_with_a_schedule, two_outputs, several_steps_at_once]
PROGRAMS += [own_train_step]


def fit(model: Any, y: Any, callback: Any, **options: Any) -> None:
    data = {"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0, "shuffle": False}
    model.fit(X, y, callbacks=[callback], **data, **options)


def learned(folder: Path) -> LearningSignals:
    [run] = discover([str(folder)]).runs
    return learning_signals(analyze(run).timeline)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.__name__))
def test_a_capture_knows_what_an_ordinary_log_knows(program: Program, tmp_path: Path) -> None:
    board, stall = tmp_path / "board", tmp_path / "stall"
    callbacks = {
        board: keras.callbacks.TensorBoard(board, update_freq="batch", profile_batch=0),
        stall: StallCallback(stall, profile=False, report=False),
    }
    for callback in callbacks.values():
        keras.backend.clear_session()  # so that layers get the same names
        keras.utils.set_random_seed(1)
        program(callback)
    finish(stall)
    ordinary, ours = learned(board), learned(stall)
    assert ours.epoch_losses == pytest.approx(ordinary.epoch_losses, rel=1e-5)
    assert ours.validation_losses == pytest.approx(ordinary.validation_losses, rel=1e-5)
    assert ours.accuracies == pytest.approx(ordinary.accuracies, rel=1e-5)
    assert ordinary.steps_per_epoch in (ours.steps_per_epoch, None)
    assert len(ours.steps) and np.isfinite(ours.steps.value).all()
    # Keras 2 stores only a part of how a model was compiled, and does not log a constant rate.
    # Keras 3, too, stores nothing about a model of a custom class.
    if len(ordinary.learning_rates):
        assert ours.learning_rates == pytest.approx(ordinary.learning_rates, rel=0.02)
    if ordinary.settings.optimizer is not None:
        assert ours.settings == ordinary.settings
    assert ours.settings.optimizer is not None and ours.settings.output is not None


def test_class_weights_and_batches_are_known_from_a_capture_only(tmp_path: Path) -> None:
    model = keras.Sequential(layers(3, "softmax"))
    model.compile("adam", "sparse_categorical_crossentropy")
    callback = StallCallback(tmp_path, profile=False, report=False)
    fit(model, CLASSES, callback, class_weight={0: 1.0, 1: 2.0, 2: 5.0})
    finish(tmp_path)
    [run] = discover([str(tmp_path)]).runs
    timeline = analyze(run).timeline
    assert timeline.events is not None and timeline.events.capture is not None
    record = timeline.events.capture.model
    assert record is not None
    assert record.class_weight == {"0": 1.0, "1": 2.0, "2": 5.0}
    assert (record.batch_size, record.shuffle) == (BATCH, False)
    settings = learning_signals(timeline).settings
    assert settings.classes == 3 and settings.guess_loss is None


def test_the_call_that_finds_the_end_of_the_data_has_no_loss(tmp_path: Path) -> None:
    """It is not known how many batches a filter leaves, so one more is requested."""
    model = keras.Sequential(layers(1))
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((X, TARGETS)).filter(lambda *_: True).batch(BATCH)
    callback = StallCallback(tmp_path, profile=False, report=False)
    model.fit(data.map(lambda x, y: (x, y * float("nan"))), callbacks=[callback], verbose=0)
    finish(tmp_path)
    told = capture_logs.scalars(tmp_path)
    assert [np.isfinite(value) for _, value in told[Tag.LOSS]] == [False] * STEPS
    assert Tag.LOSS_LOWEST not in told


def test_a_loop_tells_its_epochs_and_its_optimizer(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    model, optimizer = keras.Sequential(layers(3, "softmax")), keras.optimizers.Adam(0.01)
    with watch(tmp_path, model, optimizer, profile=False, report=False) as w:
        for epoch in range(2):
            w.epoch()
            for step in range(STEPS):
                model(X[:BATCH])
                w.step(loss=tf.constant(float(epoch + step % 2)))
    finish(tmp_path)
    ours = learned(tmp_path)
    assert ours.epoch_losses == pytest.approx([0.5, 1.5])
    assert ours.settings.optimizer == "Adam"
    assert ours.settings.learning_rate == pytest.approx(0.01)
    assert ours.settings.classes == 3
    assert ours.settings.guess_loss is None  # how the loop averages its loss is not known


def test_the_mean_of_all_steps_represents_those_between_two_looks(tmp_path: Path) -> None:
    with watch(tmp_path, profile=False, report=False) as w:
        w.epoch()
        for step in range(32):
            w.step(loss=1.0 if step < 16 else 10.0 + step % 2)
    finish(tmp_path)
    steps = learned(tmp_path).steps
    assert list(steps.value[:16]) == [1.0] * 16
    assert (steps.step[-1], steps.value[-1]) == (32, 10.5)


def test_a_single_nan_loss_between_two_looks_is_seen(tmp_path: Path) -> None:
    with watch(tmp_path, profile=False, report=False) as w:
        w.epoch()
        for step in range(32):
            w.step(loss=float("nan") if step == 20 else 1.0)
    finish(tmp_path)
    broken = learned(tmp_path).not_finite
    assert broken is not None
    assert (broken.step, broken.last_finite_step, broken.to_the_end) == (21, 20, False)
