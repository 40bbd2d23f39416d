"""`stall-analyze check` runs an unchanged script up to its first fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from stall_analyzer.captures.capture_format import CheckName, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck, PreflightRecord
from tb_stall_plugin.capture.check_command import exit_code, in_words
from tests.capture.capture_logs import records

CHECK = [sys.executable, "-m", "stall_analyzer", "check"]
SCRIPT = """
    import sys
    import numpy as np, tensorflow as tf
    from tb_stall_plugin.capture.preflight import preflight
    preflight.SECONDS = 1e6  # however busy the machine is
    keras = tf.keras
    layers = [keras.layers.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    model.fit(x * float(sys.argv[1]), x[:, :1], verbose=0)
    print("trained")
"""


def check(folder: Path, script: str, *arguments: str, **options: str) -> tuple[int, str, str]:
    (folder / "train.py").write_text(dedent(script))
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    done = subprocess.run(
        [*CHECK, "--logdir", str(folder / "logs"), *given, "train.py", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_healthy_script_ends_at_its_first_fit_with_0(tmp_path: Path) -> None:
    code, out, said = check(tmp_path, SCRIPT, "1")
    assert code == 0, said
    assert "trained" not in out and out.count("passed") == 6
    assert "No problem was found" in out
    assert records(tmp_path / "logs", "preflight")


def test_the_exit_code_says_that_something_was_found(tmp_path: Path) -> None:
    code, out, _ = check(tmp_path, SCRIPT, "0")
    assert code == 4
    assert "FAILED" in out and "Do not start this training yet" in out


def test_a_script_without_a_fit_is_told_so(tmp_path: Path) -> None:
    code, out, said = check(tmp_path, "print('no fit here')")
    assert (code, out) == (3, "no fit here\n")
    assert "without calling Keras's model.fit" in said and "`watch`" in said


def test_a_script_that_fails_keeps_its_exit_code(tmp_path: Path) -> None:
    code, _, said = check(tmp_path, "raise SystemExit(9)")
    assert code == 9 and "before calling model.fit" in said


@pytest.mark.parametrize("arguments", [[], ["--"], ["--go-on"]])
def test_a_command_line_without_a_script_is_refused(arguments: list[str]) -> None:
    done = subprocess.run([*CHECK, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "a script is required" in done.stderr


def test_what_could_not_be_checked_does_not_count_as_passed() -> None:
    why = PreflightCheck(CheckName.LOSS, CheckResult.NOT_CHECKED, "a train_step of its own")
    record = PreflightRecord(1, 0.2, (why,))
    assert exit_code(record) == 3
    assert "not checked  first loss             a train_step of its own" in in_words(record)
    assert "Nothing could be checked" in in_words(record)
