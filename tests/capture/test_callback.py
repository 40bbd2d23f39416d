"""StallCallback in real trainings: what it leaves behind, and that it leaves the training alone."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.process.guard import guard
from tb_stall_plugin.capture.process.watchdog import Watchdog
from tb_stall_plugin.capture.training import window_plan
from tb_stall_plugin.capture.training.gradients import GradientMeter
from tb_stall_plugin.capture.training.tracing_counts import tracing_counts
from tests.capture import capture_logs
from tests.capture.small_trainings import (
    FEATURES,
    batches,
    finish,
    keras,
    profiles,
    small_model,
    tf,
)

STEPS = 24


def captured(logdir: Path, *others: Any, epochs: int = 1, model: Any = None, **options: Any) -> Any:
    """Trains a model under the capture, and returns it."""
    model = model or small_model(**options)
    callbacks = [StallCallback(logdir), *others]
    model.fit(batches(STEPS), epochs=epochs, verbose=0, callbacks=callbacks)
    finish(logdir)
    return model


def test_the_capture_says_how_much_of_the_training_thread_it_took(tmp_path: Path) -> None:
    captured(tmp_path)
    marks = capture_logs.records(tmp_path, "mark")
    taken = {mark["what"]: mark["own_s"] for mark in marks}
    at_ns = {mark["what"]: mark["ns"] for mark in marks}
    epoch_s = (at_ns["epoch_end"] - at_ns["epoch_begin"]) / 1e9
    assert 0 <= taken["epoch_begin"] < taken["epoch_end"] < taken["epoch_begin"] + epoch_s
    [run] = discover([str(tmp_path)]).runs
    causes_ps = analyze(run).hosts[0].ledger.causes_ps
    assert causes_ps["profiler.capture"] > 0, "its profile shows it"


def windows(logdir: Path, what: str) -> list[dict[str, Any]]:
    return [record for record in capture_logs.records(logdir, "window") if record["what"] == what]


def model_record(logdir: Path) -> dict[str, Any]:
    return capture_logs.records(logdir, "model")[-1]


def test_the_analyzer_sees_the_first_epoch_from_before_tracing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_plan, "WHOLE_SECONDS", 1e6)  # however slow the steps are
    steps = 12
    small_model().fit(
        batches(steps),
        epochs=2,
        verbose=0,
        validation_data=batches(4),
        callbacks=[StallCallback(tmp_path)],
    )
    finish(tmp_path)
    [run] = discover([str(tmp_path)]).runs
    report = analyze(run)
    [host] = report.hosts
    assert host.covered_ps > 0.95 * report.timeline.window.duration_ps
    assert [step.phase for step in report.timeline.steps].count("training") == steps
    marks = [(m["what"], m["epoch"], m["step"]) for m in capture_logs.records(tmp_path, "mark")]
    assert marks == [
        ("fit_begin", None, 0),
        ("epoch_begin", 0, 0),
        ("validation_begin", 0, steps),
        ("validation_end", 0, steps),
        ("epoch_end", 0, steps),
        ("epoch_begin", 1, steps),
        ("validation_begin", 1, 2 * steps),
        ("validation_end", 1, 2 * steps),
        ("epoch_end", 1, 2 * steps),
        ("fit_end", None, 2 * steps),
    ]


def test_each_window_is_a_session_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    captured(tmp_path)
    saved = windows(tmp_path, "saved")
    assert saved[0]["reason"] == "start"
    assert saved[0]["first_step"] == 0
    sessions = {path.parent.name for path in profiles(tmp_path)}
    assert {record["session"] for record in saved} == sessions
    assert not list(tmp_path.glob(".stall-*"))


def test_loss_and_seconds_are_those_of_the_step(tmp_path: Path) -> None:
    captured(tmp_path)
    scalars = capture_logs.scalars(tmp_path)
    due = list(range(16))
    assert [step for step, _ in scalars[Tag.LOSS]][: len(due)] == due
    assert [step for step, _ in scalars[Tag.STEP_SECONDS]][: len(due)] == due
    x, y = next(iter(batches(STEPS)))
    expected = float(small_model().evaluate(x, y, verbose=0))
    assert scalars[Tag.LOSS][0][1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"steps_per_execution": 4}, {"jit_compile": True}],
    ids=["plain", "several steps a call", "xla"],
)
def test_nothing_is_traced_again_and_the_weights_come_out_the_same(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    alone = small_model(**options)
    alone.fit(batches(STEPS), verbose=0)
    model = captured(tmp_path, **options)
    assert tracing_counts(model) == tracing_counts(alone) != {}
    assert model_record(tmp_path)["probed"]
    for ours, theirs in zip(model.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_run_eagerly(tmp_path: Path) -> None:
    captured(tmp_path, run_eagerly=True)
    assert model_record(tmp_path)["probed"]
    assert len(capture_logs.scalars(tmp_path)[Tag.GRADIENT_NORM]) == 16
    assert len(capture_logs.scalars(tmp_path)[Tag.LOSS]) == 17  # the end of the epoch, too


def test_a_loss_scale_and_the_updates_it_skips(tmp_path: Path) -> None:
    inner = keras.optimizers.SGD(0.01)
    optimizer = keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=2.0**127)
    captured(tmp_path, optimizer=optimizer, loss_weights=16.0)
    scalars = capture_logs.scalars(tmp_path)
    scales = [value for _, value in scalars[Tag.LOSS_SCALE]]
    skipped = [value for _, value in scalars[Tag.SKIPPED_UPDATES]]
    assert scales[0] == 2.0**127
    assert scales[-1] < scales[0]
    assert skipped[0] == 1
    halvings = round(np.log2(scales[0] / scales[-1]))
    assert skipped[-1] in (halvings, halvings + 1)


def test_mixed_precision(tmp_path: Path) -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        captured(tmp_path)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert model_record(tmp_path)["probed"]
    norms = [value for _, value in capture_logs.scalars(tmp_path)[Tag.GRADIENT_NORM]]
    plain = tmp_path / "plain"
    captured(plain)
    expected = capture_logs.scalars(plain)[Tag.GRADIENT_NORM][0][1]
    assert norms[0] == pytest.approx(expected, rel=0.05)  # unscaled


def test_two_replicas(tmp_path: Path) -> None:
    code, said = capture_logs.run(
        """
        import sys
        from tests.capture.small_trainings import batches, finish, keras, small_model, tf
        from tb_stall_plugin import StallCallback
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
        with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
            model = small_model()
        model.fit(batches(24), verbose=0, callbacks=[StallCallback(sys.argv[1])])
        """,
        tmp_path,
    )
    assert code == 0, said
    assert model_record(tmp_path)["probed"], said
    assert len(capture_logs.scalars(tmp_path)[Tag.GRADIENT_NORM]) == 16
    assert len(capture_logs.scalars(tmp_path)[Tag.LOSS]) == 17  # the end of the epoch, too


def test_beside_keras_own_profile(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board = keras.callbacks.TensorBoard(str(tmp_path / "board"), profile_batch=(6, 8))
    captured(tmp_path / "ours", board)
    assert len(list((tmp_path / "board").rglob("*.xplane.pb"))) == 1
    first = windows(tmp_path / "ours", "saved")[0]
    assert first["last_step"] < 5
    assert "profiler" not in caplog.text


def test_beside_another_profiler_it_steps_aside(tmp_path: Path) -> None:
    with tf.profiler.experimental.Profile(str(tmp_path / "theirs")):
        captured(tmp_path / "ours")
    assert len(profiles(tmp_path / "theirs")) == 1
    assert profiles(tmp_path / "ours") == []
    [note] = capture_logs.records(tmp_path / "ours", "note")
    assert "Another profiler was running" in note["text"]


def test_a_second_fit_continues_in_the_same_files(tmp_path: Path) -> None:
    model, callback = small_model(), StallCallback(tmp_path)
    for _ in range(2):
        model.fit(batches(STEPS), verbose=0, callbacks=[callback])
    finish(tmp_path)
    assert len(list(tmp_path.glob("events.*"))) == 1
    begins = [m for m in capture_logs.records(tmp_path, "mark") if m["what"] == "fit_begin"]
    assert [mark["step"] for mark in begins] == [0, STEPS]
    assert [mark["steps"] for mark in begins] == [STEPS, STEPS]  # in an epoch
    measured = [step for step, _ in capture_logs.scalars(tmp_path)[Tag.LOSS]]
    assert measured[:16] == list(range(16))
    assert set(measured[16:]) <= {STEPS - 1, 31, 2 * STEPS - 1}  # two of them end an epoch


class FailsAt(keras.callbacks.Callback):
    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch = batch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == self.batch:
            raise KeyError("label")


def test_a_fit_that_an_exception_has_ended_is_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watchdog, "look", lambda watchdog: None)  # it might ask first
    with pytest.raises(KeyError):
        captured(tmp_path, FailsAt(3))
    pulse = guard(tmp_path).pulse
    assert pulse.phase != "idle"
    assert pulse.was_left()
    assert pulse.phase == "idle"
    finish(tmp_path)
    assert capture_logs.records(tmp_path, "mark")[-1]["what"] == "fit_end"
    assert "Training ended early" in capture_logs.records(tmp_path, "note")[0]["text"]


def test_a_fit_after_one_that_failed_starts_over(tmp_path: Path) -> None:
    callback, model = StallCallback(tmp_path), small_model()
    with pytest.raises(KeyError):
        model.fit(batches(STEPS), verbose=0, callbacks=[callback, FailsAt(3)])
    model.fit(batches(STEPS), verbose=0, callbacks=[callback])
    finish(tmp_path)
    whats = [mark["what"] for mark in capture_logs.records(tmp_path, "mark")]
    one_fit = ["fit_begin", "epoch_begin", "epoch_end", "fit_end"]
    assert whats == ["fit_begin", "epoch_begin", "fit_end", *one_fit]


def test_a_model_traced_before_is_not_probed_and_the_record_says_why(tmp_path: Path) -> None:
    model = small_model()
    model.fit(batches(STEPS), verbose=0)
    captured(tmp_path, model=model)
    record = model_record(tmp_path)
    assert not record["probed"]
    assert "already been traced" in record["why"]


def test_a_step_that_bypasses_the_optimizer_is_not_probed(tmp_path: Path) -> None:
    class OwnStep(keras.Sequential):
        def train_step(self, data: Any) -> dict[str, Any]:
            return {"loss": tf.reduce_mean(self(data[0]))}

    model = OwnStep([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    captured(tmp_path, model=model)
    assert "did not go through the optimizer" in model_record(tmp_path)["why"]


def test_a_step_without_data_does_not_count(tmp_path: Path) -> None:
    data = batches(STEPS).filter(lambda x, y: True)  # of unknown length
    model = small_model()
    model.fit(data, verbose=0, callbacks=[StallCallback(tmp_path)])
    finish(tmp_path)
    [end] = [m for m in capture_logs.records(tmp_path, "mark") if m["what"] == "epoch_end"]
    assert end["step"] == STEPS


def test_a_logdir_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING, "stall"):
        model = captured(tmp_path / "file" / "logs")
    assert np.isfinite(model.get_weights()[0]).all()
    assert 1 <= len([r for r in caplog.records if r.name == "stall"]) <= 3


def test_a_failing_part_is_logged_once_and_the_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise ValueError("out of order")

    monkeypatch.setattr(GradientMeter, "before_update", fails)
    captured(tmp_path)
    assert caplog.text.count("out of order") == 1
    [note] = capture_logs.records(tmp_path, "note")
    assert "out of order" in note["text"]
    assert profiles(tmp_path)
    assert len(capture_logs.scalars(tmp_path)[Tag.STEP_SECONDS]) >= 16  # long steps are logged, too


def test_models_can_be_saved_as_usual_during_the_training_and_after_it(tmp_path: Path) -> None:
    path = str(tmp_path / "model.keras")
    model = captured(tmp_path / "logs", keras.callbacks.ModelCheckpoint(path))
    loaded = keras.models.load_model(path)
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])
    model.save(str(tmp_path / "after.keras"))
    again = keras.models.load_model(str(tmp_path / "after.keras"))
    again.fit(batches(2), verbose=0)
    assert type(again.optimizer) is type(model.optimizer)


def test_the_optimizer_is_as_before(tmp_path: Path) -> None:
    model = captured(tmp_path)
    assert not {"apply", "apply_gradients", "scale_loss", "minimize"} & set(vars(model.optimizer))


class Named(StallCallback):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / name, budget=0.01)
        self.name = name


def test_the_iterator_is_released_when_fit_returns(tmp_path: Path) -> None:
    """And not only with the garbage: an iterator over Python code that is taken down when Python
    ends waits forever, for threads that can no longer run Python."""

    def endless() -> Iterator[Any]:
        while True:
            yield np.ones((4, FEATURES)), np.ones((4, 1))

    def iterators() -> int:
        return sum(type(each).__name__ == "OwnedIterator" for each in gc.get_objects())

    gc.collect()
    before = iterators()
    gc.disable()
    try:
        callback = StallCallback(tmp_path)
        small_model().fit(endless(), steps_per_epoch=3, verbose=0, callbacks=[callback])
        assert iterators() == before
    finally:
        gc.enable()
        finish(tmp_path)


def test_copies_of_the_callback_start_over(tmp_path: Path) -> None:
    callback = Named(tmp_path, "run")
    small_model().fit(batches(2), verbose=0, callbacks=[callback])
    for copied in (copy.deepcopy(callback), pickle.loads(pickle.dumps(callback))):
        assert (copied.name, copied._options) == ("run", callback._options)
        assert copied._session is None and copied.model is None
        small_model().fit(batches(2), verbose=0, callbacks=[copied])
        assert copied._session is not callback._session


def test_keras_2_beside_keras_3_is_told_which_hooks_there_are(tmp_path: Path) -> None:
    callback = StallCallback(tmp_path)
    assert callback._implements_train_batch_hooks()
    assert callback._implements_test_batch_hooks()
    assert not callback._implements_predict_batch_hooks()
