"""The line that a capture prints when the first epoch is over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.captures.capture_records import BooksRecord
from stall_analyzer.live.first_epoch import first_epoch
from tb_stall_plugin import StallCallback, watch
from tb_stall_plugin.capture.training import first_epoch_line
from tests.capture.capture_logs import start
from tests.capture.small_trainings import batches, keras, small_model
from tests.patience import PATIENCE_S

Capsys = pytest.CaptureFixture[str]
NS = 1_000_000_000


@pytest.fixture(autouse=True)
def nothing_said() -> Iterator[None]:
    first_epoch_line._said.clear()
    yield
    first_epoch_line._said.clear()


def record(phase: str, at_s: float, steps: int = 1, **spent_s: float) -> BooksRecord:
    spent = {account: (round(s * NS),) for account, s in spent_s.items()}
    lasted = sum(ns for (ns,) in spent.values())
    return BooksRecord(
        began_ns=round(at_s * NS),
        phase=phase,
        epoch=0,
        lasted_ns=(lasted,),
        steps=(steps,),
        calls=(steps,),
        spent_ns=spent,
    )


# ---------------------------------------------------------------- its words


def test_what_comes_once_is_told_from_what_comes_again() -> None:
    records = [
        record("start", 0.0, python=3.0),
        record("train", 3.0, trace=9.0, step=1.0),
        record("train", 13.0, wait=0.5, step=0.1),
        record("train", 13.6, wait=3.4, step=0.2),
        record("between", 17.2, callback=0.1),
    ]
    assert first_epoch(records) == (
        "The first epoch took 14.3 s: 9.00 s for tracing (once) and "
        "3.40 s for waiting for input (in every epoch unless cached)"
    )


def test_a_loop_without_epochs_is_a_training() -> None:
    said = first_epoch([record("start", 0.0, step=4.0)])
    assert said == "Training took 4.00 s: 4.00 s for running the steps"


def test_what_only_a_profile_can_divide_is_not_called_computing() -> None:
    """The report finds graphs being prepared, memory and dispatch in the same seconds."""
    records = [
        record("train", 0.0, trace=4.0, step=5.0),
        record("train", 9.0, step=1.0),
        record("train", 10.0, step=1.0),
    ]
    assert first_epoch(records) == (
        "The first epoch took 11.0 s: 4.00 s for tracing (once) and "
        "4.00 s for the first run of each graph (once)"
    )


def test_without_books_nothing_is_said() -> None:
    assert first_epoch([]) == ""


# ---------------------------------------------------------------- when it is said


def lines(capsys: Capsys) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if "stall-analyze" in line]


def fit(callback: Any, epochs: int = 2, **options: Any) -> None:
    small_model().fit(batches(4), epochs=epochs, verbose=0, callbacks=[callback], **options)


def test_it_is_said_once_with_the_command_that_tells_more(tmp_path: Path, capsys: Capsys) -> None:
    callback = StallCallback(tmp_path, profile=False)
    fit(callback, epochs=3)
    fit(callback)
    (line,) = lines(capsys)
    assert line.startswith("The first epoch took ")
    assert line.endswith(f". Details: stall-analyze {tmp_path}")
    assert "(once)" in line


def test_the_only_epoch_counts_as_well(tmp_path: Path, capsys: Capsys) -> None:
    fit(StallCallback(tmp_path, profile=False), epochs=1)
    assert len(lines(capsys)) == 1


def test_it_can_be_turned_off(tmp_path: Path, capsys: Capsys) -> None:
    fit(StallCallback(tmp_path, profile=False, report=False))
    assert lines(capsys) == []


def test_it_stands_between_the_bars_of_two_epochs(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # to see the order of both
    callback = StallCallback(tmp_path, profile=False)
    small_model().fit(batches(4), epochs=2, verbose=2, callbacks=[callback])
    said = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(said) if "stall-analyze" in line)
    assert said[at].startswith("The first epoch") and said[at + 1] == "Epoch 2/2"
    assert "loss" in said[at - 1]


def test_an_unfinished_epoch_is_not_summarized(tmp_path: Path, capsys: Capsys) -> None:
    class Fails(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 2:
                raise KeyError("label")

    with pytest.raises(KeyError):
        small_model().fit(
            batches(4), verbose=0, callbacks=[StallCallback(tmp_path, profile=False), Fails()]
        )
    fit(StallCallback(tmp_path, profile=False))
    assert len(lines(capsys)) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_loop_says_it_at_its_end_unless_it_failed(
    tmp_path: Path, capsys: Capsys, fails: bool
) -> None:
    try:
        with watch(tmp_path, profile=False) as w:
            for _ in range(3):
                w.step()
            if fails:
                raise KeyError("label")
    except KeyError:
        pass
    assert [line.split()[0] for line in lines(capsys)] == ([] if fails else ["Training"])


@pytest.mark.parametrize(
    ("task", "speaks"),
    [(("worker", 0), True), (("worker", 1), False), (("ps", 0), False)],
)
def test_in_a_cluster_only_the_first_worker_says_it(
    tmp_path: Path,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
    task: tuple[str, int],
    speaks: bool,
) -> None:
    cluster = {"worker": ["localhost:1", "localhost:2"], "ps": ["localhost:3"]}
    config = {"cluster": cluster, "task": {"type": task[0], "index": task[1]}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with watch(tmp_path, profile=False) as w:
        w.step()
    assert len(lines(capsys)) == speaks


# ---------------------------------------------------------------- next to a real training

TRAINING = """
    import sys, time
    import numpy as np
    from tb_stall_plugin import StallCallback
    from tests.capture.small_trainings import FEATURES, small_model, tf

    began_s = time.monotonic()

    def load():
        random = np.random.default_rng(0)
        pause_s = max(0.05, (time.monotonic() - began_s) / 50)  # together longer than the rest
        for n in range(150):
            time.sleep(pause_s)
            if n == 100:
                sys.stdin.read()  # until the test has seen it
            x = random.normal(size=(4, FEATURES)).astype("float32")
            yield x, x[:, :1]

    shapes = tf.TensorSpec((4, FEATURES)), tf.TensorSpec((4, 1))
    data = tf.data.Dataset.from_generator(load, output_signature=shapes)
    callback = StallCallback(sys.argv[1], profile=False)
    small_model().fit(data, steps_per_epoch=150, verbose=0, callbacks=[callback])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_watch_follows_a_real_training_to_its_verdict(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    command = [sys.executable, "-u", "-m", "stall_analyzer", "watch", str(logdir)]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines: list[str] = []

    def follow(until: str) -> None:
        assert watching.stdout is not None
        while not lines or not lines[-1].startswith(until):
            lines.append(watching.stdout.readline())
            assert lines[-1], "it ended too early"

    follow(f"{logdir} does not exist yet")
    training = start(TRAINING, logdir / "run1")
    follow("run1: epoch 1, step ")
    _, said = training.communicate(timeout=PATIENCE_S)
    assert training.returncode == 0 and "waiting for input" in said
    follow("run1 has ")  # trained, or ended
    watching.send_signal(signal.SIGINT)
    _, errors = watching.communicate(timeout=PATIENCE_S)
    assert (watching.returncode, errors) == (0, "")
    assert lines[0] == f"{logdir} does not exist yet; waiting.\n"
    steps = [line for line in lines if line.startswith("run1: epoch 1, step ")]
    assert steps and " of 150, " in steps[-1] and "% " in steps[-1]
    assert "input" in lines[-1]
