"""Keras on JAX or PyTorch, and other loops: what can be recorded without TensorFlow.

These tests run in separate processes in which TensorFlow cannot be imported. Keras is a stand-in:
only a base class and the name of its backend are needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.discover.discover import discover
from stall_analyzer.pipeline import analyze
from tb_stall_plugin.capture.without_tensorflow.session import MeanOfEpoch
from tests.capture import capture_logs
from tests.capture.capture_logs import run

WITHOUT_TENSORFLOW = """
import sys, types
sys.modules["tensorflow"] = None  # importing it fails
keras = types.ModuleType("keras")
keras.__spec__ = types.SimpleNamespace()
keras.backend = types.SimpleNamespace(backend=lambda: "jax")
base = type("Callback", (), {"params": None, "model": None})
keras.callbacks = types.SimpleNamespace(Callback=base)
sys.modules["keras"] = keras
"""
FIT = """
from tb_stall_plugin import StallCallback

class CallbackList:
    def __init__(self, callbacks):
        self.callbacks = callbacks
    def call(self, name, *arguments):
        for callback in self.callbacks:
            getattr(callback, name)(*arguments)

def fit(callback):
    calls = CallbackList([callback])
    calls.call("on_train_begin")
    for epoch in range(2):
        calls.call("on_epoch_begin", epoch)
        for batch in range(5):
            calls.call("on_train_batch_begin", batch)
            calls.call("on_train_batch_end", batch, {"loss": 2.0})
        calls.call("on_test_begin")
        calls.call("on_test_batch_end", 0)
        calls.call("on_test_end")
        calls.call("on_epoch_end", epoch)
    calls.call("on_train_end")

fit(StallCallback(sys.argv[1], probe=False, report=False))
"""
LOOP = """
from tb_stall_plugin import watch
with watch(sys.argv[1], None, None) as w:
    for epoch in range(2):
        w.epoch()
        for step in range(5):
            w.step(loss=1.5)
"""


@pytest.mark.parametrize("program", [FIT, LOOP], ids=["fit", "loop"])
def test_steps_losses_and_the_host_are_recorded_without_tensorflow(
    program: str, tmp_path: Path
) -> None:
    assert run(WITHOUT_TENSORFLOW + program, tmp_path) == (0, "")
    whats = [mark["what"] for mark in capture_logs.records(tmp_path, "mark")]
    assert whats[:2] == ["fit_begin", "epoch_begin"] and whats[-1] == "fit_end"
    scalars = capture_logs.scalars(tmp_path)
    assert [step for step, _ in scalars[Tag.LOSS]] == list(range(10))
    assert any(tag.startswith(Tag.HOST) for tag in scalars)
    assert capture_logs.records(tmp_path, "end")[-1]["reason"] == "exit"


def test_the_report_says_so_in_a_sentence_and_guesses_nothing(tmp_path: Path) -> None:
    assert run(WITHOUT_TENSORFLOW + FIT, tmp_path) == (0, "")
    [found] = discover([str(tmp_path)]).runs
    report = analyze(found)
    assert report.verdict.status == report.verdict.primary == "unknown"
    assert report.verdict.sentence.startswith("Trained with JAX: the first epoch took")
    assert report.estimate is None and not report.findings


def test_the_loss_of_the_steps_is_worked_out_from_the_means_that_keras_logs() -> None:
    loss = MeanOfEpoch()
    assert loss.since(1, {"loss": 4.0}) == 4.0
    assert loss.since(2, {"loss": 3.0}) == 2.0
    assert loss.since(4, {"loss": 2.0}) == 1.0  # two steps
    assert loss.since(5, {}) is None
    loss.begin_anew()
    assert loss.since(1, {"loss": 7.0}) == 7.0
