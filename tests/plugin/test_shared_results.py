"""The command and the tab share their results, through the real command and the real routes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from stall_analyzer.report.document_types import ReportEntry
from stall_analyzer.results import worker_process
from tests import event_files
from tests.batch.fleets import copy_sample, lines_of, run_command
from tests.plugin.boards import Board
from tests.test_events import MODEL

WINDOW = {"start_ps": 0, "end_ps": 10**15, "pixels": 100}


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command gets a relative path, the tab an absolute one."""
    copy_sample("compile_tracing", tmp_path / "logs" / "a")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs"


def analyze(*options: str | Path) -> list[ReportEntry]:
    finished = run_command("logs", "--jsonl", "all.jsonl", *options)
    assert finished.returncode == 0, finished.stderr
    return lines_of(Path("all.jsonl"))


def forbid_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", ("/no/such/python",))


def results(cache: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in cache.rglob("*.result")}


# ---------------------------------------------------------------- from the command to the tab


def test_what_the_command_has_analyzed_opens_at_once_in_the_tab(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = analyze()
    forbid_work(monkeypatch)
    board = Board(str(logs))
    assert board.runs()["a"]["state"] == "ready"
    answer = board.answer("report", run="a")
    assert answer["state"] == "ready"
    assert answer["report"] == entry


def test_its_timeline_is_made_when_somebody_looks_at_it(logs: Path) -> None:
    analyze()
    board = Board(str(logs))
    assert board.runs()["a"]["progress"] is None  # nobody looks yet
    first = board.answer("report", run="a")
    assert first["progress"] is not None
    waiting = board.answer("timeline", run="a", **WINDOW)
    assert waiting.get("state") == "running" or waiting["lanes"]
    last = board.report("a")
    assert last["report"] == first["report"]
    assert last["version"] != first["version"]  # the page asks for the timeline again
    assert board.answer("timeline", run="a", **WINDOW)["lanes"]
    assert board.answer("timeline", run="a", **WINDOW)["version"] == last["version"]


def test_a_timeline_that_cannot_be_made_does_not_cost_the_report(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyze()
    forbid_work(monkeypatch)
    board = Board(str(logs))
    answer = board.report("a")
    assert (answer["state"], answer["progress"]) == ("ready", None)
    response = board.ask("timeline", run="a", **WINDOW)
    assert response.status_code == 404
    assert "no process could be started" in response.get_json()["error"]


def test_what_the_command_could_not_read_is_tried_again_by_the_tab(logs: Path) -> None:
    finished = run_command("logs", "--jobs", "2", "--deadline", "1ms")
    assert finished.returncode == 4
    assert "it took longer than 0.001 s" in finished.stdout.replace("\n", " ")
    assert Board(str(logs)).report("a")["report"]["verdict"]["status"] != "unknown"


# ---------------------------------------------------------------- from the tab to the command


def test_the_command_uses_what_the_tab_has_analyzed(logs: Path, tmp_path: Path) -> None:
    report = Board(str(logs)).report("a")["report"]
    before = results(tmp_path / "cache")
    assert len(before) == 1
    assert analyze() == [report]
    assert results(tmp_path / "cache") == before  # nothing was made again
    assert analyze("--fresh") == [report]
    assert results(tmp_path / "cache") != before


def test_a_timeline_survives_the_command(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Board(str(logs)).report("a")
    analyze("--fresh")
    forbid_work(monkeypatch)
    board = Board(str(logs))
    assert board.answer("report", run="a")["progress"] is None
    assert board.answer("timeline", run="a", **WINDOW)["lanes"]


def test_a_changed_run_is_read_again_by_either(logs: Path, tmp_path: Path) -> None:
    first = Board(str(logs)).report("a")["version"]
    (trace,) = logs.rglob("*.xplane.pb")
    os.utime(trace, (1, 1))
    before = results(tmp_path / "cache")
    analyze()
    assert results(tmp_path / "cache") != before
    board = Board(str(logs))
    assert board.answer("report", run="a")["state"] == "ready"
    assert board.report("a")["version"] != first


def test_a_run_that_was_just_written_is_kept_if_its_first_epoch_is_over(
    logs: Path, tmp_path: Path
) -> None:
    for path in logs.rglob("*"):
        os.utime(path)
    Board(str(logs)).report("a")
    before = results(tmp_path / "cache")
    analyze()
    assert results(tmp_path / "cache") == before


def test_a_run_without_a_finished_epoch_is_read_by_the_command_each_time(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is stuck can be decided only now; the tab, which stays open, looks again later."""
    shutil.rmtree(logs / "a")
    (logs / "a" / "train").mkdir(parents=True)
    model = event_files.record(event_files.model(MODEL))
    (logs / "a" / "train" / event_files.file_name()).write_bytes(model)
    Board(str(logs)).report("a")
    before = results(tmp_path / "cache")
    analyze()
    assert results(tmp_path / "cache") != before
    forbid_work(monkeypatch)
    assert Board(str(logs)).answer("report", run="a")["state"] == "ready"
