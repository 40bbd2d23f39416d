"""examples/: the scripts and notebooks run, and their reports say what their README promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stall_analyzer as stall
from tests.patience import PATIENCE_S
from tests.real_documents import ROOT

EXAMPLES = ROOT / "examples"


def outputs_of(name: str) -> str:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook: Any = nbformat.read(EXAMPLES / name, as_version=4)
    nbclient.NotebookClient(
        notebook,
        timeout=round(PATIENCE_S),
        startup_timeout=round(PATIENCE_S),
        resources={"metadata": {"path": str(EXAMPLES)}},
    ).execute()  # raises on an error
    return str([output for cell in notebook.cells for output in cell.get("outputs", ())])


def test_the_notebook_about_the_sample_logs_runs() -> None:
    assert "input_py_function" in outputs_of("first_epoch.ipynb")


def test_the_notebook_goes_from_the_stuck_training_to_its_fix() -> None:
    pytest.importorskip("tensorflow")
    said = outputs_of("stuck_training.ipynb")
    assert "ST001 The Python function in MapDataset:2 takes" in said
    assert "predicted" in said and "saved" in said


def test_the_stuck_training_is_explained(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    script = [sys.executable, "stuck_training.py", "--logdir", str(tmp_path / "stuck")]
    subprocess.run(script, cwd=EXAMPLES, check=True, timeout=PATIENCE_S, capture_output=True)
    result = stall.analyze(tmp_path / "stuck")
    found = {finding.id: finding for finding in result.findings}
    assert (
        "MapDataset:2" in found["ST001"].title
    )  # how loud it is depends on how busy the machine is


@pytest.mark.parametrize(("name", "found"), [("stuck", True), ("fixed", False)])
def test_the_reports_in_the_folder_are_about_it(name: str, found: bool) -> None:
    assert ("`ST001`" in (EXAMPLES / "reports" / f"{name}.md").read_text("utf-8")) is found
