"""`fit` with a StallCallback that its caller knows nothing of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.captures.capture_format import Tag
from tb_stall_plugin.capture import imports
from tb_stall_plugin.capture.process import guard
from tests.capture.capture_logs import records, scalars

FIT = """
import keras, numpy as np, tensorflow as tf
model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(np.ones((64, 3)), np.ones((64, 1)), 8, 2, 0)
print(sorted(history.history), tf.config.list_physical_devices("CPU") != [])
"""
OWN_CALLBACK = """
import keras, numpy as np
from tb_stall_plugin import StallCallback
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((64, 3)), np.ones((64, 1)), 8, 1, 0, callbacks=[StallCallback({folder!r})])
"""
OWN_WATCH = """
import tensorflow as tf
from tb_stall_plugin import watch
with watch({folder!r}) as w:
    for _ in range(8):
        w.step()
"""
CUSTOM_LOOP = """
import tensorflow as tf
weight = tf.Variable(1.0)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = weight**2
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
print("trained")
"""


def captured(script: str, logdir: Path) -> tuple[str, str]:
    capture = [sys.executable, "-m", "stall_analyzer", "capture", "--logdir", str(logdir)]
    done = subprocess.run(
        [*capture, "--", sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_an_unchanged_keras_script_is_captured(tmp_path: Path) -> None:
    out, said = captured(FIT, tmp_path)
    assert out == "['loss'] True\n"
    assert "captured 1 process" in said and "stall.watch" not in said
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1  # for the guard and for fit
    marks = [mark["what"] for mark in records(tmp_path, "mark")]
    assert marks[0] == "fit_begin" and marks[-1] == "fit_end"
    assert marks.count("epoch_end") == 2
    assert [step for step, _ in scalars(tmp_path)[Tag.LOSS]][:8] == list(range(8))
    assert any(window["what"] == "saved" for window in records(tmp_path, "window"))
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))


@pytest.mark.parametrize("script", [OWN_CALLBACK, OWN_WATCH])
def test_a_script_that_captures_itself_is_captured_once_in_the_folder_of_the_command(
    script: str, tmp_path: Path
) -> None:
    logdir, own = tmp_path / "logs", tmp_path / "own"
    _, said = captured(script.format(folder=str(own)), logdir)
    assert not own.exists()
    assert len(list(logdir.glob("events.out.tfevents.*"))) == 1
    marks = [mark["what"] for mark in records(logdir, "mark")]
    assert marks.count("fit_begin") == marks.count("fit_end") == 1
    (note,) = (n["text"] for n in records(logdir, "note") if str(own) in n["text"])
    assert note.startswith("The script asked for its capture to go to")
    assert not any("signals" in note["text"] for note in records(logdir, "note"))
    assert f"stall-analyze {logdir}" in said
    assert "there was no model.fit" not in said and str(own) not in said


def test_a_custom_loop_is_told_what_to_add(tmp_path: Path) -> None:
    out, said = captured(CUSTOM_LOOP, tmp_path)
    assert out == "trained\n"
    assert f"with stall.watch({str(tmp_path)!r}) as w:" in said
    assert records(tmp_path, "start")[0]["devices"] is None


class Trainer:
    def fit(self, x: object, callbacks: Any = None) -> Any:
        """Fits."""
        return callbacks


@pytest.fixture
def fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(imports.LOGDIR, str(tmp_path))
    monkeypatch.setenv(imports.HANG_AFTER, "")
    monkeypatch.setattr(Trainer, "fit", imports.with_callback(Trainer.fit))
    return Trainer().fit


@pytest.mark.parametrize("given", [None, [], ["theirs"], ("theirs",), "theirs"])
def test_ours_comes_before_theirs(fit: Any, given: Any) -> None:
    theirs = [] if not given else ["theirs"]
    ours, *rest = fit(1, callbacks=given)
    assert type(ours).__name__ == "StallCallback" and rest == theirs


def test_a_callback_list_is_left_as_it_is(fit: Any, caplog: pytest.LogCaptureFixture) -> None:
    class CallbackList:
        pass

    theirs = CallbackList()
    assert fit(1, callbacks=theirs) is theirs
    assert "not captured: it was given a CallbackList" in caplog.text


def test_a_stall_callback_that_is_already_there_is_enough(fit: Any) -> None:
    (ours,) = fit(1)
    assert fit(1, [ours]) == [ours]


def test_fit_looks_as_before(fit: Any) -> None:
    assert (fit.__name__, fit.__doc__) == ("fit", "Fits.")


def test_what_fit_refuses_is_refused_with_its_own_message(fit: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        fit(1, epoch=3)


# ---------------------------------------------------------------- before TensorFlow is imported


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """How long the programs had run when a guard was started for them."""
    ages: list[float] = []
    monkeypatch.setenv(imports.LOGDIR, str(tmp_path))
    monkeypatch.setattr(guard, "is_on_duty", lambda: False)
    monkeypatch.setattr(guard, "guard", lambda logdir, hang_after_s, age_s: ages.append(age_s))
    return ages


def test_a_program_that_never_gets_to_tensorflow_is_watched(begun: list[float]) -> None:
    imports._begin_late(imports.LATE_S)
    assert begun == [imports.LATE_S]


def test_a_program_that_only_starts_others_is_not(begun: list[float], tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.box.2.0.stall").touch()
    imports._begin_late(imports.LATE_S)
    assert begun == []


def test_what_a_captured_program_starts_is_not_watched_separately(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(imports.LOGDIR, str(tmp_path))
    monkeypatch.delenv(imports.BELOW, raising=False)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    begun: list[int] = []
    monkeypatch.setattr(imports, "_begin_when_late", lambda: begun.append(1))
    imports.watch_imports()
    imports.watch_imports()
    assert begun == [1]
