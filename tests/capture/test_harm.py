"""The most important checks of `make harm`: only the capture makes a difference."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenarios.harm.capture import KINDS, Kind
from tests.scenarios.harm.child import MODULES
from tests.scenarios.harm.run import Ended, compare, difference, without_ours
from tests.scenarios.harm.table import table, write_table

for module in MODULES:
    importlib.import_module(f"tests.scenarios.harm.{module}")

KIND = Kind("any", "any", lambda capture: None)
ALONE = Ended(0, ("hello",), {"results": ["a"], "traced": {"step": 1}, "left": {"threads": 0}})


@pytest.mark.parametrize("name", ["accumulated_in_variables", "survived", "exits_at_once"])
def test_a_program_is_the_same_with_and_without_a_capture(name: str, tmp_path: Path) -> None:
    assert compare(KINDS[name], tmp_path).problem == ""


WIDE = """
import sys
import keras, numpy as np
from tb_stall_plugin import StallCallback
layers = [keras.layers.Input((8,)), keras.layers.Dense(512), keras.layers.Dense(512)]
model = keras.Sequential(layers)
model.compile("sgd", "mse")
x, y = np.zeros((64, 8)), np.zeros((64, 512))
model.fit(x, y, verbose=0, callbacks=[StallCallback(sys.argv[1], report=False)])
"""


def test_tensorflow_has_nothing_to_complain_about(tmp_path: Path) -> None:
    """Gradients of this size pass through an If of ours. `make harm` turns TensorFlow's log off."""
    done = subprocess.run(
        [sys.executable, "-c", WIDE, str(tmp_path)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.findall(r"^E\d{4} .*", done.stderr, re.MULTILINE) == []


def test_what_is_not_installed_is_skipped_and_said(tmp_path: Path) -> None:
    needs = Kind("any", "any", lambda capture: None, needs="no_such_package")
    assert compare(needs, tmp_path).skipped == "no_such_package is not installed"


@pytest.mark.parametrize(
    ("captured", "said"),
    [
        (ALONE, ""),
        (Ended(1, ALONE.said, ALONE.result), "ends with 1"),
        (Ended(0, ALONE.said, {**ALONE.result, "results": ["b"]}), "other weights"),
        (Ended(0, ALONE.said, {**ALONE.result, "traced": {"step": 2}}), "traced {'step': 1} more"),
        (Ended(0, ALONE.said, {**ALONE.result, "left": {"threads": 3}}), "3 threads more"),
        (Ended(0, ("hello", "RuntimeWarning"), ALONE.result), "says something else"),
    ],
    ids=["nothing", "exit code", "weights", "traces", "leaks", "console"],
)
def test_each_difference_is_reported(captured: Ended, said: str) -> None:
    assert difference(KIND, ALONE, captured).startswith(said)
    assert bool(difference(KIND, ALONE, captured)) is bool(said)


def test_lines_and_frames_of_the_capture_are_left_out_of_what_was_said() -> None:
    said = """\
The first epoch took 1.69 s: 497 ms for running the steps. Details: stall-analyze logs
Traceback (most recent call last):
  File "/env/tb_stall_plugin/capture/training/timed_calls.py", line 134, in _spend
    return method(*arguments, **named)
           ^^^^^^
  File "/home/train.py", line 3, in step
    raise ValueError("mine")
ValueError: mine
"""
    assert without_ours(said) == [
        "Traceback (most recent call last):",
        'File "/home/train.py", line N, in step',
        'raise ValueError("mine")',
        "ValueError: mine",
    ]


def test_the_table_is_put_between_its_markers(tmp_path: Path) -> None:
    path = tmp_path / "CAPTURE.md"
    path.write_text("before\n<!-- harm -->\nold\n<!-- /harm -->\nafter\n")
    rows = [("fit", "", ""), ("loop", "other weights", ""), ("tf_keras", "", "not installed")]
    write_table(path, rows)
    assert path.read_text() == f"before\n<!-- harm -->\n{table(rows)}<!-- /harm -->\nafter\n"
    assert table(rows).splitlines()[2:] == [
        "| fit | the same |",
        "| loop | other weights |",
        "| tf_keras | not run: not installed |",
    ]
