"""Fits after fits, fits inside fits, fits that an exception ends: each ends once, on its own."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorflow.python.eager import context

from stall_analyzer.captures.capture_format import Tag
from tb_stall_plugin import StallCallback
from tb_stall_plugin.capture.process.guard import guard
from tb_stall_plugin.capture.process.watchdog import Watchdog
from tb_stall_plugin.capture.training import gradients
from tb_stall_plugin.capture.training.keras_model import Fit
from tb_stall_plugin.capture.training.measured_steps import EVERY, MeasuredSteps
from tb_stall_plugin.capture.training.training_session import TrainingSession
from tests.capture import capture_logs
from tests.capture.small_trainings import batches, finish, keras, small_model
from tests.capture.test_pulse import MovedClock
from tests.patience import happens


def new_session(folder: Path, **options: Any) -> TrainingSession:
    defaults = {"budget": 0.05, "hang_after_s": None, "probe": False, "profile": False}
    return TrainingSession(str(folder), **{**defaults, **options})


@pytest.fixture
def no_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process's own watchdog might ask first which fits have ended."""
    monkeypatch.setattr(Watchdog, "look", lambda watchdog: None)


def in_another_thread(action: Callable[[], None]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def marks(folder: Path) -> list[str]:
    finish(folder)
    return [mark["what"] for mark in capture_logs.records(folder, "mark")]


# ---------------------------------------------------------------- fits that an exception ends


@pytest.mark.usefixtures("no_watchdog")
def test_a_watchdog_that_is_late_does_not_end_the_next_fit(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    session.begin(None, None, was_left=lambda: True)
    (first,) = guard(tmp_path).pulse.fits
    session.begin(None, None, was_left=lambda: False)
    assert not first()
    assert guard(tmp_path).pulse.phase == "startup"
    session.end()
    assert marks(tmp_path) == ["fit_begin", "fit_end"] * 2


@pytest.mark.usefixtures("no_watchdog")
def test_the_watchdog_does_not_wait_for_a_fit_that_begins(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    session.begin(None, None, was_left=lambda: True)
    answers: list[bool] = []

    def ask() -> None:
        answers.append(guard(tmp_path).pulse.was_left())

    with session._beginning_or_ending:
        in_another_thread(ask)
    assert answers == [False]
    in_another_thread(ask)
    assert answers == [False, True]


@pytest.mark.usefixtures("no_watchdog")
def test_the_outer_fit_is_still_watched_after_a_fit_inside_of_it(tmp_path: Path) -> None:
    outer, inner = new_session(tmp_path), new_session(tmp_path)
    is_left = {"outer": False, "inner": False}
    pulse = guard(tmp_path).pulse
    outer.begin(None, None, was_left=lambda: is_left["outer"])
    inner.begin(None, None, was_left=lambda: is_left["inner"])
    inner.end()
    is_left["inner"] = True
    assert not pulse.was_left()  # it has ended by itself, which says nothing about the outer one
    is_left["outer"] = True
    assert pulse.was_left()
    assert not pulse.was_left()


@pytest.mark.usefixtures("no_watchdog")
def test_fits_that_failed_are_ended_when_the_next_one_begins(tmp_path: Path) -> None:
    for _ in range(3):
        new_session(tmp_path).begin(None, None, was_left=lambda: True)
    assert len(guard(tmp_path).pulse.fits) == 1


# ---------------------------------------------------------------- which fit it is


class Group(keras.callbacks.Callback):
    """A callback that has its own callbacks."""

    def __init__(self, *callbacks: Any) -> None:
        super().__init__()
        self.callbacks = list(callbacks)

    def set_model(self, model: Any) -> None:
        for callback in self.callbacks:
            callback.set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        for callback in self.callbacks:
            callback.on_train_begin(logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert not guard(self.callbacks[0]._options["logdir"]).pulse.was_left()

    def on_train_end(self, logs: Any = None) -> None:
        for callback in self.callbacks:
            callback.on_train_end(logs)


def test_a_callback_inside_of_another_is_not_mistaken_for_one_whose_fit_failed(
    tmp_path: Path,
) -> None:
    callback = StallCallback(tmp_path)
    small_model().fit(batches(3), verbose=0, callbacks=[Group(callback)])
    assert marks(tmp_path) == ["fit_begin", "fit_end"]


class FitCaller:
    """Has the same callbacks as the list that fit makes from them."""

    def __init__(self, callback: Any) -> None:
        self.callbacks = [callback]

    def begin(self, callback: Any) -> Fit:
        return Fit(callback)

    def fit(self, callback: Any) -> Callable[[], bool]:
        was_left = self.begin(callback).was_left
        assert was_left is not None and not was_left()
        return was_left


def test_a_fit_has_ended_when_it_is_no_longer_on_any_stack() -> None:
    callback = object()
    assert FitCaller(callback).fit(callback)()


def test_without_a_fit_it_is_not_known_whether_it_has_ended() -> None:
    callback = object()
    assert FitCaller(callback).begin(callback).was_left is None


def test_a_fit_that_cannot_be_captured_still_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(callback: Any) -> None:
        raise ValueError("out of order")

    monkeypatch.setattr("tb_stall_plugin.capture.training.callback.Fit", fails)
    history = small_model().fit(batches(2), verbose=0, callbacks=[StallCallback(tmp_path)])
    assert len(history.history["loss"]) == 1
    assert "training continues" in caplog.text


# ---------------------------------------------------------------- how closely steps are looked at


class Told:
    """Takes the place of the profiled windows, and records what they are told, and when."""

    def __init__(self) -> None:
        self.is_busy = False
        self.steps_s: list[list[float]] = []

    def steps_ended(self, seconds: list[float], python_runs_beside: bool) -> None:
        self.steps_s.append(seconds)

    def first_epoch_ended(self) -> None:
        pass


class TimedTraining:
    """A session with a clock and windows made by the test."""

    def __init__(self, session: TrainingSession) -> None:
        self.session, self.told, self.clock = session, Told(), MovedClock()
        session._pulse.clock_ns = self.clock
        session.begin(None, None)
        session._windows = self.told  # type: ignore[assignment]

    def step(self, seconds: float) -> None:
        self.session.step_begins()
        self.clock.wait(seconds)
        self.told.is_busy = seconds == PROFILED_S
        self.session.step_ends()

    def end(self) -> list[list[float]]:
        """How long the steps took, for each look."""
        self.session._windows = None
        self.session.end()
        return self.told.steps_s


def looks(session: TrainingSession, *steps_s: float) -> list[list[float]]:
    training = TimedTraining(session)
    for seconds in steps_s:
        training.step(seconds)
    return training.end()


SHORT_S, LONG_S, PROFILED_S = 0.001, 0.06, 0.002


def test_short_steps_are_looked_at_together_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, measuring takes longer than these steps, which follow the test's clock.
    monkeypatch.setattr(MeasuredSteps, "took", lambda *_: None)
    found = looks(new_session(tmp_path), *[SHORT_S] * 200)
    assert found[:EVERY] == [[SHORT_S]] * EVERY  # the first ones are looked at one by one
    assert set(map(len, found[EVERY:])) <= {1, EVERY - 1, EVERY}
    assert sum(map(len, found)) > 200 - EVERY
    assert len(found) < 50


def test_a_long_step_is_looked_at_when_it_ends(tmp_path: Path) -> None:
    found = looks(new_session(tmp_path), *[SHORT_S] * 20, LONG_S)
    assert found[-1] == [SHORT_S] * 4 + [LONG_S]
    finish(tmp_path)
    step, seconds = capture_logs.scalars(tmp_path)[Tag.STEP_SECONDS][-1]
    assert step == 20 and seconds == pytest.approx(LONG_S)


def test_steps_of_a_window_are_looked_at_one_by_one(tmp_path: Path) -> None:
    found = looks(new_session(tmp_path), *[SHORT_S] * EVERY, *[PROFILED_S] * 40)
    assert found[-20:] == [[PROFILED_S]] * 20


def test_the_first_step_of_an_epoch_begins_with_it(tmp_path: Path) -> None:
    training = TimedTraining(new_session(tmp_path))
    for epoch in range(2):
        training.clock.wait(5.0)  # tracing is prepared, a model validated
        training.session.epoch_begins(epoch)
        training.clock.wait(2.0)  # an iterator is made
        training.step(1.0)
        training.session.epoch_ends(epoch)
    assert training.end() == [[3.0], [3.0]]


# ---------------------------------------------------------------- what is shared, what is kept


def test_all_sessions_of_a_folder_share_one_plan_of_profiles(tmp_path: Path) -> None:
    first = new_session(tmp_path, profile=True)
    second = new_session(tmp_path, profile=True, budget=0.01)
    assert first._windows is second._windows is not None
    second.begin(None, None)
    assert second._windows.plan.budget == 0.01
    second.end()


def test_many_fits_with_a_callback_each_have_no_more_profiles_than_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_stall_plugin.capture.training.window_plan.MOST_WINDOWS", 2)
    model = small_model()
    for _ in range(4):
        callback = StallCallback(tmp_path, budget=1e6, probe=False)
        model.fit(batches(2), verbose=0, callbacks=[callback])
        finish(tmp_path)
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 2


def test_a_finished_training_is_not_kept_in_memory(tmp_path: Path) -> None:
    def train() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        model = small_model()
        model.fit(batches(3), verbose=0, callbacks=[StallCallback(tmp_path)])
        return weakref.ref(model), weakref.ref(model.optimizer)

    def is_gone() -> bool:
        gc.collect()
        return model() is None and optimizer() is None

    model, optimizer = train()
    assert happens(is_gone, within_s=10.0)  # a look at stacks may hold it for a while


def test_another_fit_with_another_callback_is_still_measured(tmp_path: Path) -> None:
    model = small_model()
    for _ in range(2):
        model.fit(batches(3), verbose=0, callbacks=[StallCallback(tmp_path)])
        gc.collect()
    finish(tmp_path)
    assert [step for step, _ in capture_logs.scalars(tmp_path)["stall/loss"]] == list(range(6))
    assert all(record["probed"] for record in capture_logs.records(tmp_path, "model"))


def test_the_end_of_a_fit_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_session(tmp_path)
    session.begin(None, None)

    def hangs(urgent: bool = False) -> None:
        raise AssertionError("the training thread writes")

    monkeypatch.setattr(session._recorder, "flush", hangs)
    session.end()
    monkeypatch.undo()
    assert marks(tmp_path) == ["fit_begin", "fit_end"]


def test_a_callback_returns_to_its_folder_after_another_folder_was_used(tmp_path: Path) -> None:
    first, second = StallCallback(tmp_path / "a"), StallCallback(tmp_path / "b")
    model = small_model()
    for callback in (first, second, first):
        model.fit(batches(2), verbose=0, callbacks=[callback])
    finish(tmp_path / "a")
    begun = [m for m in capture_logs.records(tmp_path / "a", "mark") if m["what"] == "fit_begin"]
    assert len(begun) == 2


def test_no_function_of_ours_is_left_of_a_finished_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow keeps the graphs of its steps."""
    monkeypatch.setattr(gradients, "MOST_HELD_BYTES", 0)  # so that it is measured in the step

    def ours() -> set[str]:
        gc.collect()
        names = context.context().list_function_names()
        return {name for name in names if "measure" in name or name.startswith("cond_")}

    def train() -> None:
        model = small_model()
        model.fit(batches(3), verbose=0, callbacks=[StallCallback(tmp_path)])
        assert ours() - before, "it is measured"

    before = ours()
    train()
    capture_logs.until(lambda: not ours() - before)  # garbage is found bit by bit
