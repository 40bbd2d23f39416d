"""A baseline from another PATH: its runs have other names, and nothing can be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stall_analyzer.cli import main as cli
from tests.batch.fleets import copy_sample

Capsys = pytest.CaptureFixture[str]
OK, USAGE = 0, 2


@pytest.fixture
def checked(tmp_path: Path, capsys: Capsys) -> tuple[str, ...]:
    """One run, and a baseline in which it is named from the folder above."""
    run, before = copy_sample("healthy", tmp_path / "logs" / "nightly" / "a"), tmp_path / "b.jsonl"
    assert cli.main([str(tmp_path / "logs"), "--jsonl", str(before)]) == OK
    capsys.readouterr()
    return str(run.parent), "--baseline", str(before)


def test_it_is_an_error_that_names_one_of_its_runs(
    checked: tuple[str, ...], capsys: Capsys
) -> None:
    assert cli.main(checked) == USAGE
    assert (
        "nothing was compared: no run here has the same name as a run in the baseline (such as "
        "'nightly/a'). Runs are named by their folder below PATH, so use the same PATH as for the "
        "baseline"
    ) in capsys.readouterr().err


def test_the_runs_are_reported_without_a_comparison(
    checked: tuple[str, ...], capsys: Capsys
) -> None:
    cli.main(checked)
    text = capsys.readouterr().out
    assert "Healthy: " in text and "baseline" not in text
    cli.main([*checked, "--json"])
    assert json.loads(capsys.readouterr().out)["worse"] is None


def test_runs_that_were_not_selected_are_not_gone(
    checked: tuple[str, ...], tmp_path: Path, capsys: Capsys
) -> None:
    copy_sample("input_py_function", tmp_path / "logs" / "b")
    both, before = str(tmp_path / "logs"), str(tmp_path / "both.jsonl")
    cli.main([both, "--jsonl", before])
    capsys.readouterr()
    for selection in (("--run", "b"), ("--status", "slow_always")):
        assert cli.main([both, "--baseline", before, *selection]) == OK
        assert "1 compared, 0 new, 1 not selected or gone." in capsys.readouterr().out


def test_a_selection_without_a_run_of_the_baseline_is_no_other_path(
    checked: tuple[str, ...], tmp_path: Path, capsys: Capsys
) -> None:
    copy_sample("healthy", tmp_path / "logs" / "b")
    assert cli.main([str(tmp_path / "logs"), *checked[1:], "--run", "b"]) == USAGE
    said = capsys.readouterr().err
    assert "none of the selected runs is in the baseline (which has runs such as 'ni" in said
    assert "same PATH" not in said


def test_limits_exceeded_are_said_too(checked: tuple[str, ...], capsys: Capsys) -> None:
    cli.main([*checked, "--fail-over", "epoch=1s"])
    assert "over a limit: 1 of 1 run\n" in capsys.readouterr().err
