"""Log directories of several runs, made from the sample logs, and results with other times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.batch import engines
from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.selection import Selection
from stall_analyzer.model.runs import EventFile, Run
from stall_analyzer.report.document_types import ReportEntry
from stall_analyzer.report.facts import Facts, facts_of
from stall_analyzer.results.result_store import ResultStore
from tests.real_documents import divided

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_logs"
LONG_AGO_S = 1_790_000_000  # nobody writes to such files anymore
SECONDS = 1000  # milliseconds, for `facts`
HELD = """
import os, time
from stall_analyzer import outcome
analyze_one = outcome.analyze_one
def held(run, *more):
    while run.name >= {name!r} and not os.path.exists({go_on!r}):
        time.sleep(0.05)
    return analyze_one(run, *more)
outcome.analyze_one = held
"""


def copy_sample(sample: str, folder: Path, changed_unix_s: float = LONG_AGO_S) -> Path:
    """A run as it was left long ago."""
    shutil.copytree(SAMPLES / sample, folder, dirs_exist_ok=True)
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (changed_unix_s, changed_unix_s))
    return folder


def lay_out(root: Path, names: Iterable[str], sample: str = "event_files_only") -> Path:
    for name in names:
        copy_sample(sample, root / name)
    return root


def hold_from(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """From the run of this name on, processes that are started wait for the file whose path this
    is: or a pass might be over before a test has come to disturb it."""
    go_on, site = folder / "go on", folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HELD.format(name=name, go_on=str(go_on)))
    paths = (str(site), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return go_on


def fake_run(name: str, changed_unix_s: float | None = LONG_AGO_S, stamp: str = "1") -> Run:
    """A run without any files."""
    files = (EventFile(f"logs/{name}/events", "train", 10, stamp=stamp),)
    return Run(name, f"logs/{name}", (), files, changed_unix_s=changed_unix_s)


def analyzed(
    root: Path | str, store: Path, wanted: Selection | None = None
) -> tuple[Batch, list[Facts]]:
    """A whole batch in this process, and what was reported about each run."""
    heard: list[Facts] = []
    batch = Batch(ResultStore(store), heard.append)
    batch.find([str(root)], wanted or Selection())
    with engines.in_this_process() as engine:
        batch.analyze(engine)
    return batch, heard


def facts(name: str = "r", causes_ms: dict[str, int] | None = None, **more: Any) -> Facts:
    """The facts of a real run whose time is divided like this."""
    return facts_of(divided(name, causes_ms or {"compute.step": 1000}, **more))


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "stall_analyzer", *map(str, arguments)]


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def lines_of(path: Path) -> list[ReportEntry]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def names_of(entries: Iterable[ReportEntry]) -> list[str]:
    return [entry["run"] for entry in entries]
