"""The runner of the fault matrix, without training anything."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.faults import run as runner
from tests.scenarios.faults.base import Fault


def never(logdir: str) -> None:
    raise AssertionError("programs run in processes of their own")


FAULT = Fault("slow", "ST001", "input", never, never, "made up", {"A": "1"})
CALM = Fault("calm", None, "compute", never, None, "made up", healthy=True)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Puts two faults into the table and notes which programs were trained."""
    forms: list[str] = []
    documents = {
        "slow/faulty": (3, "input", [("ST001", 1.5, 2.1)]),
        "slow/fixed": (1, "compute", []),
        "calm/faulty": (2, "compute", []),
    }

    def train(case: runner.Case, form: str, turn: int) -> None:
        forms.append(f"{case.fault.name}/{case.logs(form, turn).parent.name}")

    def analyze(logdir: Path) -> dict[str, Any]:
        seconds, primary, findings = documents[f"{logdir.parent.parent.name}/{logdir.parent.name}"]
        return {
            "window": {"duration_ps": seconds * 10**12},
            "verdict": {"primary": primary},
            "findings": [
                {
                    "id": id,
                    "severity": "act",
                    "bucket": "input",
                    "gain_ps": {"low": low * 1e12, "high": high * 1e12},
                }
                for id, low, high in findings
            ],
        }

    table = {"slow": ("input", FAULT), "calm": ("host", CALM)}
    monkeypatch.setattr(runner, "all_faults", lambda: table)
    monkeypatch.setattr(runner, "train", train)
    monkeypatch.setattr(runner, "analyze", analyze)
    monkeypatch.setattr(runner, "contradictions", lambda run: [])  # these are no whole pages
    return forms


def test_both_forms_are_trained_and_scored(
    trained: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "ACCURACY.md"
    assert runner.main(["--workdir", str(tmp_path), "--markdown", str(written)]) == 0
    assert trained == ["slow/faulty", "slow/fixed", "calm/faulty"]
    assert capsys.readouterr().out.endswith("PASS\n")
    assert "| slow | ST001 | yes |" in written.read_text()


def test_with_repeats_the_forms_take_turns(trained: list[str], tmp_path: Path) -> None:
    runner.main(["slow", "--repeats", "2", "--workdir", str(tmp_path)])
    assert trained == ["slow/faulty", "slow/fixed", "slow/fixed_2", "slow/faulty_2"]


def test_only_what_promises_seconds_is_repeated(trained: list[str], tmp_path: Path) -> None:
    runner.main(["calm", "--repeats", "3", "--workdir", str(tmp_path)])
    assert trained == ["calm/faulty"]


@pytest.mark.parametrize(("seconds", "median"), [([5, 1, 3], 3), ([4, 2], 2), ([7], 7)])
def test_the_run_with_the_median_epoch_counts(seconds: list[int], median: int) -> None:
    runs = [{"window": {"duration_ps": duration}} for duration in seconds]
    assert runner.typical(runs)["window"]["duration_ps"] == median


def test_only_score_trains_nothing(trained: list[str], tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    assert runner.main(["slow", "--only-score", "--workdir", str(tmp_path)]) == 0
    assert trained == []


def test_a_partial_run_does_not_replace_published_results(
    trained: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "accuracy.md"
    page.write_text("published")
    (tmp_path / "slow").mkdir()
    options = ["--only-score", "--workdir", str(tmp_path), "--markdown", str(page)]
    assert runner.main(options) == 2 and trained == []
    assert "nothing is scored: calm" in capsys.readouterr().err
    assert page.read_text() == "published"


def test_a_program_that_fails_is_named_and_the_others_go_on(
    trained: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def crash(case: runner.Case, form: str, turn: int) -> None:
        if case.fault is FAULT:
            raise subprocess.CalledProcessError(1, "child")

    monkeypatch.setattr(runner, "train", crash)
    assert runner.main(["--workdir", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "slow" in output and "FAILED: CalledProcessError" in output
    assert "calm" in output and output.endswith("FAIL\n")


@pytest.mark.usefixtures("trained")
def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["slwo"]) == 2
    assert "no such fault: slwo" in capsys.readouterr().err
