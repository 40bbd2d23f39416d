"""`watch` around training loops that are not Keras's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from tb_stall_plugin import watch
from tb_stall_plugin.capture.training import window_plan
from tests.capture import capture_logs
from tests.capture.small_trainings import batches, finish, keras, small_model, tf

STEPS = 12


def train(logdir: Path, model: Any, epochs: int = 1, fails_at: int | None = None) -> None:
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        return loss

    with watch(logdir, model, optimizer) as w:
        for _ in range(epochs):
            w.epoch()
            for number, (x, y) in enumerate(batches(STEPS)):
                if number == fails_at:
                    raise KeyError("label")
                w.step(loss=train_step(x, y))


def test_a_loop_is_seen_like_a_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_plan, "WHOLE_SECONDS", 1e6)  # however slow the steps are
    train(tmp_path, small_model(), epochs=2)
    finish(tmp_path)
    marks = [(m["what"], m["epoch"], m["step"]) for m in capture_logs.records(tmp_path, "mark")]
    assert marks == [
        ("fit_begin", None, 0),
        ("epoch_begin", 0, 0),
        ("epoch_end", 0, STEPS),
        ("epoch_begin", 1, STEPS),
        ("epoch_end", 1, 2 * STEPS),
        ("fit_end", None, 2 * STEPS),
    ]
    scalars = capture_logs.scalars(tmp_path)
    # The first sixteen, and the end of an epoch.
    assert [step for step, _ in scalars[Tag.LOSS]] == [*range(16), 2 * STEPS - 1]
    assert Tag.GRADIENT_NORM_OF + "first" in scalars
    [run] = discover([str(tmp_path)]).runs
    steps = analyze(run).timeline.steps
    assert {step.source for step in steps} == {"marker"}
    assert len(steps) in (STEPS, 2 * STEPS)  # one epoch, or all that was traced


def test_an_exception_is_recorded_and_passed_on(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="label"):
        train(tmp_path, small_model(), fails_at=3)
    finish(tmp_path)
    [dump] = capture_logs.records(tmp_path, "dump")
    assert dump["error"]["type"] == "KeyError"
    assert dump["step"] == 3


def test_without_model_and_optimizer_the_steps_are_still_there(tmp_path: Path) -> None:
    with watch(tmp_path) as w:
        for number in range(3):
            w.step(loss=float(number))
    finish(tmp_path)
    assert capture_logs.scalars(tmp_path)[Tag.LOSS] == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert not capture_logs.records(tmp_path, "model")[0]["probed"]


def test_a_loss_that_is_not_a_number_turns_off_only_the_log(tmp_path: Path) -> None:
    with watch(tmp_path) as w:
        for _ in range(3):
            w.step(loss="high")
    finish(tmp_path)
    [note] = capture_logs.records(tmp_path, "note")
    assert "Logging the steps" in note["text"]
