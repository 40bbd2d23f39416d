"""How wide the report is, and what a run is called, in terminals, pipes and files."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from stall_analyzer.cli import main as cli
from tests.real_documents import ROOT

Capsys = pytest.CaptureFixture[str]
SAMPLE = ROOT / "sample_logs" / "input_py_function"


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


@pytest.mark.parametrize(
    ("columns", "width"), [("40", 40), ("64", 64), ("", 80), ("0", 80), ("wide", 80), ("200", 100)]
)
def test_columns_is_honored_in_a_pipe(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main([str(SAMPLE)]) == 0
    heading = capsys.readouterr().out.splitlines()[0]
    assert heading.startswith("input_py_function ──")
    assert len(heading) == width


def test_columns_is_honored_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert cli.main([str(SAMPLE), "-o", str(tmp_path / "report.txt")]) == 0
    assert widest((tmp_path / "report.txt").read_text("utf-8")) == 40


def test_sums_over_many_runs_fit_forty_columns_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    for number in range(21):
        copytree(SAMPLE.with_name("event_files_only"), tmp_path / f"run-{number:02d}")
    monkeypatch.setenv("COLUMNS", "40")
    cli.main([str(tmp_path), "--fail-over", "input=20%"])
    text = capsys.readouterr().out
    assert text.startswith("21 runs: ") and "over a limit" in text
    assert widest(text) <= 40


def test_a_run_is_called_by_its_folder_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    (tmp_path / "lr_0.1").symlink_to(SAMPLE)
    monkeypatch.chdir(tmp_path / "lr_0.1")
    cli.main([".", "--fail-over", "input=20%"])
    text = capsys.readouterr().out
    assert text.splitlines()[0].split()[0] in ("lr_0.1", "input_py_function")
    assert "\n. " not in text and not any(line.endswith(" .") for line in text.splitlines())
    session = next((SAMPLE / "plugins" / "profile").iterdir())
    cli.main([str(session)])
    assert capsys.readouterr().out.startswith("input_py_function ──")
