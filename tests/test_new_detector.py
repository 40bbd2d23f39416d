"""`scripts/new_detector`: what it writes is a good starting point."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.new_detector import FIRST_ID, next_id, write_detector
from stall_analyzer.detectors.registry import DETECTORS
from tests.real_documents import ROOT

NAME = "slow_eager_ops"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of this repository as a detector and its test need."""
    without = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "analyzer", tmp_path / "analyzer", ignore=without)
    (tmp_path / "tests").mkdir()
    for module in ROOT.glob("tests/[!t]*.py"):
        shutil.copy(module, tmp_path / "tests")
    for name in ("tests/traces.py", "tests/detectors/__init__.py", "tests/detectors/training.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(place: Path, *command: str) -> None:
    path = os.pathsep.join([str(place / "analyzer"), str(place)])
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check(checkout: Path, detector: Path, test: Path) -> None:
    rules = str(ROOT / "pyproject.toml")
    run(checkout, "ruff", "check", "--config", rules, str(detector), str(test))
    run(checkout, "ruff", "format", "--check", "--config", rules, str(detector), str(test))
    run(checkout, "pytest", str(test), "-p", "no:cacheprovider", "-q")
    kept = str(ROOT / ".mypy_cache")  # what it imports has been checked already
    run(ROOT, "mypy", "--strict", "--cache-dir", kept, str(detector))


def test_what_is_written_passes_lint_types_and_its_own_test(checkout: Path) -> None:
    check(checkout, *write_detector("host", NAME, "host.eager", checkout))


def test_the_worked_example_of_the_manual_works(checkout: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    example = page.partition("### A complete example")[2]
    texts = re.findall(r"^```python\n(.*?)^```$", example, re.MULTILINE | re.DOTALL)
    written = write_detector("host", NAME, "host.eager", checkout)
    for path, text in zip(written, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    check(checkout, *written)


def test_ids_continue_after_the_last_of_the_family(checkout: Path) -> None:
    detectors = checkout / "analyzer" / "stall_analyzer" / "detectors"
    known = {detector.id for detector in DETECTORS}
    for family in FIRST_ID:
        assert next_id(detectors, family) not in known
    write_detector("cluster", NAME, "communication.remote", checkout)
    newer = next_id(detectors, "cluster")
    assert f'ID = "{newer}"' not in (detectors / "cluster" / f"{NAME}.py").read_text("utf-8")


def test_ids_of_a_family_do_not_run_into_those_of_the_next(checkout: Path) -> None:
    detectors = checkout / "analyzer" / "stall_analyzer" / "detectors"
    (detectors / "host" / "last.py").write_text('ID = "ST499"\n', encoding="utf-8")
    with pytest.raises(ValueError, match="no ids left after ST499"):
        next_id(detectors, "host")


@pytest.mark.parametrize("cause", ["compute.step", "unknown.not_traced", "host.nothing"])
def test_a_cause_that_is_not_lost_time_is_refused(cause: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is no lost time|is not a cause"):
        write_detector("host", NAME, cause, tmp_path)


@pytest.mark.parametrize("name", ["Slow", "slow-ops", "../x", ""])
def test_a_name_that_cannot_be_a_module_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        write_detector("host", name, "host.eager", tmp_path)


def test_nothing_is_overwritten(checkout: Path) -> None:
    write_detector("host", NAME, "host.eager", checkout)
    with pytest.raises(ValueError, match="already exists"):
        write_detector("host", NAME, "host.eager", checkout)
