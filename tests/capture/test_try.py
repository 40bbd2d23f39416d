"""`stall-analyze try` measures a change, made from outside, against the unchanged program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_stall_plugin.capture.tried import applied, measured, trial_run, try_command
from tb_stall_plugin.capture.tried.applied import Refused, change_fit, change_tensorflow
from tb_stall_plugin.capture.tried.changes import CHANGES, Knob, refusal, steps_together
from tb_stall_plugin.capture.tried.measured import Measured
from tb_stall_plugin.capture.tried.orders import Answer, Order
from tb_stall_plugin.capture.tried.predicted import Prediction
from tests.capture.small_trainings import IS_KERAS_3

PROGRAM_S = 900
# Keras 2 has no PyDataset, and keeps the settings of compile() where they cannot be changed.
needs_keras_3 = pytest.mark.skipif(not IS_KERAS_3, reason="needs Keras 3")
PS = 10**12

SCRIPT = """
import sys
from pathlib import Path
import keras, numpy as np, tensorflow as tf
from tb_stall_plugin import StallCallback
keras.utils.set_random_seed(1)
x, y = np.random.rand(6400, 8).astype("float32"), np.zeros((6400, 1), "float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
Path("begun").open("a").write("x")
try:
    model.fit(data, epochs=3, verbose=0, validation_data=data, callbacks=[
        StallCallback("own"),
        keras.callbacks.CSVLogger("log.csv"),
        keras.callbacks.TensorBoard("board", update_freq="batch"),
        keras.callbacks.ModelCheckpoint("model.keras", save_freq=10),
    ])
finally:
    model.save("final.keras")
"""


def model(**settings: Any) -> Any:
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse", **settings)
    return made


def dataset(batches: int = 50) -> tf.data.Dataset:
    rows = np.zeros((batches * 2, 4), "float32"), np.zeros((batches * 2, 1), "float32")
    return tf.data.Dataset.from_tensor_slices(rows).batch(2)


class Ended(BaseException):
    """Raised instead of ending the process."""


def answer_of(order: Order, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> Answer | None:
    """The answer of a fit in this process."""

    def end(_: int) -> None:
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    owner = arguments.pop("model", None) or model()
    fit = trial_run.bounded(keras.Model.fit, order)
    with pytest.raises(Ended):
        fit(owner, **{"x": dataset(), "verbose": 0, **arguments})
    return Answer.read(order)


# ---------------------------------------------------------------- the command


@needs_keras_3
def test_a_change_is_measured_next_to_the_prediction_and_nothing_else_is_done(
    tmp_path: Path,
) -> None:
    finished = tried(tmp_path, SCRIPT)
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)
    assert told["steps"] == 128
    assert told["change"] == "compile(steps_per_execution=32)"
    assert len(told["with_ps"]) == len(told["without_ps"]) == 1
    assert told["losses"][0] == pytest.approx(told["losses"][1])
    assert (tmp_path / "begun").read_text() == "xxx"
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "begun", "logs"}
    assert len(list((tmp_path / "logs").glob("*.stall"))) == 1


def tried(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(script)
    command = [sys.executable, "-m", "stall_analyzer", "try", "ST109", "--turns", "1"]
    command += ["--steps", "128", "--seconds", "100000", "--logdir", "logs", "--json"]
    command += ["--", sys.executable, "train.py"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PROGRAM_S, check=False
    )


def test_a_script_without_fit_is_told_so(tmp_path: Path) -> None:
    finished = tried(tmp_path, "print('no training here')")
    assert finished.returncode == try_command.NOT_TRIED
    assert "no training here" in finished.stderr
    assert "without calling Keras's model.fit" in finished.stderr


def test_a_script_that_fails_ends_the_trial(tmp_path: Path) -> None:
    finished = tried(tmp_path, "raise ValueError('broken')")
    assert finished.returncode == try_command.NOT_TRIED
    assert "broken" in finished.stderr


@needs_keras_3
def test_a_script_that_fails_with_the_change_is_told_so(tmp_path: Path) -> None:
    begin = "class Fails(keras.callbacks.Callback):\n    def on_train_begin(self, logs=None):\n"
    begin += "        if self.model.steps_per_execution > 1: raise ValueError('not so')\n"
    script = SCRIPT.replace("try:", f"{begin}try:").replace("callbacks=[", "callbacks=[Fails(),")
    finished = tried(tmp_path, script.replace("model.save", "print"))
    assert finished.returncode == try_command.FAILS
    assert "not so" in finished.stderr


@pytest.mark.parametrize(
    "given, said",
    [
        (["ST109"], "a command is required"),
        (["ST305", "--", "python"], "would affect what is learned"),
        (["ST001", "--", "python"], "your program builds the pipeline"),
        (["nonsense", "--", "python"], "there is no finding nonsense"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_the_reason(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert try_command.main(given) == 2
    assert said in capsys.readouterr().err


def test_one_of_several_workers_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert try_command.main(["ST109", "--", "python"]) == 2
    assert "wait for each other" in capsys.readouterr().err


def test_each_finding_can_be_tried_or_has_a_reason() -> None:
    from stall_analyzer.detectors import manual  # noqa: PLC0415

    ids = {page.id for page in manual.pages()}
    assert set(CHANGES) <= ids
    assert all("cannot be tried: " in refusal(finding) for finding in ids - set(CHANGES))


def test_a_call_has_fewer_steps_if_there_are_few() -> None:
    assert [steps_together(steps) for steps in (1000, 100, 10, 3)] == [32, 16, 2, 2]


# ---------------------------------------------------------------- one run


def test_a_run_ends_after_its_steps_and_tells_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_of(Order(str(tmp_path), steps=8), monkeypatch)
    assert answer is not None
    assert answer.steps == 8
    assert answer.epoch_ps > 0
    assert answer.loss == 0


def test_a_run_ends_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answer_of(Order(str(tmp_path), steps=50, seconds=0.0), monkeypatch)
    assert answer is not None
    assert answer.steps == 1


def test_an_epoch_that_is_shorter_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_of(Order(str(tmp_path), steps=80), monkeypatch, epochs=5)
    assert answer is not None
    assert answer.steps == 50


def test_validation_is_left_out_and_the_data_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.zeros((100, 4), "float32"), np.zeros((100, 1), "float32")
    tested: list[Any] = []
    watching = keras.callbacks.LambdaCallback(on_test_begin=tested.append)
    data = {"x": rows[0], "y": rows[1], "validation_split": 0.2, "batch_size": 2}
    answer = answer_of(Order(str(tmp_path), steps=99), monkeypatch, **data, callbacks=[watching])
    assert answer is not None
    assert answer.steps == 40
    assert tested == []


def test_a_backup_of_another_run_is_neither_used_nor_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = tmp_path / "backup"
    callback = keras.callbacks.BackupAndRestore(backup, save_freq=1)
    (tmp_path / "run").mkdir()
    assert answer_of(Order(str(tmp_path / "run"), 4), monkeypatch, callbacks=[callback])
    assert not backup.exists()


@needs_keras_3
@pytest.mark.parametrize(
    "knob, settings, why",
    [
        (Knob.STEPS_PER_EXECUTION, {"steps_per_execution": 4}, "is already 4"),
        (Knob.XLA_OFF, {"jit_compile": False}, "already compiled without XLA"),
        (Knob.GRAPH, {}, "already runs in graphs"),
    ],
)
def test_a_change_that_has_already_been_made_is_refused(
    knob: Knob,
    settings: dict[str, Any],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = Order(str(tmp_path), 4, knob=knob, value=2)
    answer = answer_of(order, monkeypatch, model=model(**settings))
    assert answer is not None
    assert why in answer.refused


# ---------------------------------------------------------------- the changes


@needs_keras_3
def test_settings_of_the_model_are_changed() -> None:
    together, plain, graph = model(), model(jit_compile=True), model(run_eagerly=True)
    change_fit({"self": together}, Knob.STEPS_PER_EXECUTION, 8)
    change_fit({"self": plain}, Knob.XLA_OFF, 0)
    change_fit({"self": graph}, Knob.GRAPH, 0)
    assert together.steps_per_execution == 8
    assert plain.jit_compile is False
    assert graph.run_eagerly is False


def test_a_dataset_gets_a_prefetch_or_a_limit_to_its_threads() -> None:
    arguments = {"x": dataset()}
    change_fit(arguments, Knob.PREFETCH, 0)
    assert "Prefetch" in type(arguments["x"]).__name__
    change_fit(arguments, Knob.INPUT_THREADS, 1)
    assert arguments["x"].options().threading.private_threadpool_size == 1


@pytest.mark.parametrize("knob", [Knob.PREFETCH, Knob.INPUT_THREADS, Knob.WORKERS])
def test_other_data_is_refused(knob: Knob) -> None:
    with pytest.raises(Refused, match="of type generator"):
        change_fit({"x": (row for row in "rows")}, knob, 1)


@needs_keras_3
def test_a_pydataset_gets_workers_once() -> None:
    class Rows(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return np.zeros((2, 4)), np.zeros((2, 1))

    rows = Rows()
    change_fit({"x": rows}, Knob.WORKERS, 4)
    assert rows.workers == 4
    with pytest.raises(Refused, match="already has 4 workers"):
        change_fit({"x": rows}, Knob.WORKERS, 4)


class Namespace:
    """Stands in for TensorFlow's modules, as far as they are changed."""

    def __getattr__(self, name: str) -> Any:
        value = Namespace()
        setattr(self, name, value)
        return value


def test_calls_that_are_left_out_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applied, "_left_out", [])
    with pytest.raises(Refused, match="does not use what this change turns off"):
        change_fit({}, Knob.THREADS_FREE, 0)
    tensorflow = Namespace()
    change_tensorflow(tensorflow, Knob.THREADS_FREE)
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    change_fit({}, Knob.THREADS_FREE, 0)
    with pytest.raises(TypeError):
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)


def test_the_program_neither_profiles_nor_logs_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applied, "_left_out", [])
    board = keras.callbacks.TensorBoard("logs", update_freq="batch", profile_batch=(2, 5))
    change_fit({"callbacks": [board]}, Knob.LOGGING_OFF, 0)
    assert board.update_freq == "epoch"
    with pytest.raises(Refused, match="neither profiles"):
        change_fit({"callbacks": [board]}, Knob.LOGGING_OFF, 0)
    tensorflow = Namespace()
    change_tensorflow(tensorflow, Knob.LOGGING_OFF)
    with tensorflow.profiler.experimental.Profile("logs"):
        change_fit({"callbacks": []}, Knob.LOGGING_OFF, 0)


# ---------------------------------------------------------------- what is said


def result(without_s: list[float], with_s: list[float]) -> Measured:
    without, with_it = (tuple(round(s * PS) for s in times) for times in (without_s, with_s))
    return Measured(100, without, with_it, (0.5, 0.5))


def test_the_prediction_is_shown_next_to_the_measurement() -> None:
    shown = measured.in_words(
        "ST109", CHANGES["ST109"], result([3, 3.2, 3.1], [1, 1.1, 1.3]), Prediction(PS, 3 * PS)
    )
    assert "ST109, tried: compile(steps_per_execution=32)" in shown
    assert "The first 100 steps, 3 times each, alternating:" in shown
    assert "saved        2.00 s   1.80 s to 2.10 s" in shown
    assert "predicted  1.00–3.00 s" in shown
    assert "as predicted" in shown


@pytest.mark.parametrize(
    "with_s, said",
    [
        ([2.9, 3.1, 2.9], "No clear difference"),
        ([2.95, 2.95, 2.95], "hardly any difference"),
        ([4.0, 4.0, 4.0], "slower"),
        ([2.5, 2.5, 2.5], "by less than predicted"),
        ([0.5, 0.5, 0.5], "by more than predicted"),
        ([1.5, 1.5, 1.5], "helps, as predicted"),
        ([0.5, 0.5, 1.5], "about as predicted"),
    ],
)
def test_a_difference_counts_only_if_all_pairs_agree(with_s: list[float], said: str) -> None:
    assert said in measured.judged(result([3, 3, 3], with_s), Prediction(PS, 2 * PS))


def test_a_change_is_measured_even_without_a_prediction() -> None:
    assert measured.judged(result([3], [1]), None) == "The change helps."
    assert measured.as_data("ST109", "…", result([3], [1]), None)["predicted_ps"] is None
