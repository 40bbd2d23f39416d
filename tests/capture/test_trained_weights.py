"""Whether everything that should learn is trained: fits and loops that leave something out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.discover.discover import discover
from stall_analyzer.model.findings import Finding
from stall_analyzer.pipeline import analyze
from tb_stall_plugin import StallCallback, watch
from tests.capture import capture_logs
from tests.capture.small_trainings import FEATURES, batches, finish, keras, small_model, tf

STEPS = 40


def loop(folder: Path, trained: Sequence[Any] | None, model: Any, rate: float = 0.01) -> None:
    """`trained`: the variables that the optimizer is given; None if it is never applied."""
    optimizer = keras.optimizers.SGD(rate)

    @tf.function
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        if trained is not None:
            gradients = tape.gradient(loss, model.trainable_variables[-len(trained) :])
            optimizer.apply_gradients(list(zip(gradients, trained, strict=True)))
        return loss

    with watch(folder, model, optimizer, profile=False, report=False) as w:
        w.epoch()
        for x, y in batches(STEPS):
            w.step(loss=train_step(x, y))
    finish(folder)


def frozen(folder: Path) -> Finding | None:
    [run] = discover([str(folder)]).runs
    return {finding.name: finding for finding in analyze(run).findings}.get("frozen")


def test_an_optimizer_that_is_never_applied(tmp_path: Path) -> None:
    loop(tmp_path, None, small_model())
    finding = frozen(tmp_path)
    assert finding is not None and finding.severity == "act"
    assert "never applied" in finding.explanation


def test_variables_of_another_model(tmp_path: Path) -> None:
    other = small_model().trainable_variables
    loop(tmp_path, other, small_model())
    [weights] = capture_logs.records(tmp_path, "weights")
    assert weights["still"] == weights["not_given"] == ["first", "last"]
    assert weights["updates"] == STEPS
    finding = frozen(tmp_path)
    assert finding is not None and finding.severity == "act"
    assert "variables that are not the model's" in finding.explanation


def test_training_only_some_layers_is_a_note_while_the_loss_falls(tmp_path: Path) -> None:
    model = small_model()
    loop(tmp_path, model.trainable_variables[2:], model)
    [weights] = capture_logs.records(tmp_path, "weights")
    assert (weights["still"], weights["not_given"]) == (["first"], ["first"])
    finding = frozen(tmp_path)
    assert finding is not None and finding.severity == "note"


def test_a_loop_that_trains_everything_is_healthy(tmp_path: Path) -> None:
    model = small_model()
    loop(tmp_path, model.trainable_variables, model)
    assert frozen(tmp_path) is None


def test_layers_that_are_frozen_on_purpose_are_not_reported(tmp_path: Path) -> None:
    model = small_model()
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    callback = StallCallback(tmp_path, profile=False, report=False)
    model.fit(batches(STEPS), callbacks=[callback], verbose=0)
    finish(tmp_path)
    [weights] = capture_logs.records(tmp_path, "weights")
    assert (weights["layers"], weights["still"]) == (["last"], [])
    assert frozen(tmp_path) is None


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_layers_without_a_gradient_are_named(tmp_path: Path) -> None:
    entry = keras.layers.Input((FEATURES,))
    used = keras.layers.Dense(1, name="used")(entry)
    unused = keras.layers.Dense(1, name="unused")(entry)
    together = keras.layers.Lambda(lambda both: both[0] + tf.stop_gradient(both[1]))
    model = keras.Model(entry, together([used, unused]))
    model.compile("sgd", "mse")
    callback = StallCallback(tmp_path, profile=False, report=False)
    model.fit(batches(STEPS), callbacks=[callback], verbose=0)
    finish(tmp_path)
    [weights] = capture_logs.records(tmp_path, "weights")
    assert weights["no_gradient"] == weights["still"] == ["unused"]
    [run] = discover([str(tmp_path)]).runs
    findings = {finding.name: finding for finding in analyze(run).findings}
    assert "unused" in findings["no_gradients"].explanation
    assert findings["no_gradients"].severity == "note"
