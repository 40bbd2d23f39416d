"""The worker process: when it starts and ends, and how its failures are reported."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from stall_analyzer.model.runs import HostFile, ProfileSession, Run
from stall_analyzer.results import worker_process
from tb_stall_plugin import analyses as plugin_analyses
from tb_stall_plugin.analyses import Analyses
from tests.patience import happens
from tests.plugin.boards import Board, copy_of
from tests.plugin.workers import Counting, Failing, only_run, settled

# ---------------------------------------------------------------- from its start to its end


def test_a_worker_can_start_before_the_first_request(run: Run) -> None:
    worker = Counting()
    analyses = Analyses(lambda: worker)
    analyses.warm_up()
    assert happens(lambda: worker.started)
    assert worker.runs == []
    assert settled(analyses, run).state == "ready"
    assert worker.started == 1


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a worker creates when it starts."""
    path = tmp_path / "mark"
    monkeypatch.setattr(
        worker_process, "COMMAND", (sys.executable, "-c", f"open({str(path)!r}, 'w')")
    )
    return path


def test_the_worker_starts_with_tensorboards_page_if_there_are_logs(
    tmp_path: Path, mark: Path
) -> None:
    copy_of("event_files_only", tmp_path / "logs" / "a")
    board = Board(str(tmp_path / "logs"))
    assert not mark.exists()
    board.get("/data/plugins_listing")
    assert happens(mark.exists)


def test_without_logs_the_worker_starts_with_the_tab(tmp_path: Path, mark: Path) -> None:
    board = Board(str(tmp_path / "empty"))
    board.get("/data/plugins_listing")
    time.sleep(0.3)
    assert not mark.exists()
    board.ask("index.js")
    assert happens(mark.exists)


def test_a_worker_waits_for_the_next_request_for_a_while(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[Counting] = []

    def new_worker() -> Counting:
        workers.append(Counting())
        return workers[-1]

    def read_anew(at_s: int) -> None:
        (file,) = (Path(run.path) / "train").iterdir()
        os.utime(file, (at_s, at_s))
        settled(analyses, only_run(Path(run.path)))

    analyses = Analyses(new_worker)
    read_anew(1)
    read_anew(2)
    assert [len(worker.runs) for worker in workers] == [2]
    assert happens(lambda: analyses._changed._waiters)  # type: ignore[attr-defined]
    monkeypatch.setattr("tb_stall_plugin.analyses.IDLE_S", 0.01)
    read_anew(3)
    assert happens(lambda: workers[0].closed)
    read_anew(4)
    assert [len(worker.runs) for worker in workers] == [3, 1]


# ---------------------------------------------------------------- what goes wrong


def test_a_failure_is_reported_and_not_stored(run: Run) -> None:
    status = settled(Analyses(Failing), run)
    assert status.state == "failed"
    assert status.error == "This run could not be analyzed: it is cursed."
    assert settled(Analyses(Counting), run).state == "ready"


def damage_worker(monkeypatch: pytest.MonkeyPatch, function: str, *does: str) -> None:
    """In the worker's process, runs this before the function is called for the run `a`."""
    script = [
        "import os, pathlib, time",
        "from stall_analyzer import outcome",
        "from stall_analyzer.results import worker_process",
        f"real = {function}",
        "def damaged(run, *more):",
        "    if run.name == 'a':",
        *(f"        {line}" for line in does),
        "    return real(run, *more)",
        f"{function} = damaged",
        "worker_process.main()",
    ]
    monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, "-c", "\n".join(script)))


def board_of_a_and_b(logdir: Path) -> Board:
    for name in "ab":
        copy_of("event_files_only", logdir / name)
    return Board(str(logdir))


@pytest.mark.parametrize(
    ("function", "does", "error"),
    [
        ("analyze", "raise RuntimeError('lost')", "RuntimeError: lost"),
        ("analyze_one", "os.kill(os.getpid(), 9)", "was killed, perhaps because memory ran out"),
    ],
    ids=["an analysis that fails", "a worker that is killed"],
)
def test_whatever_fails_costs_only_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, does: str, error: str
) -> None:
    damage_worker(monkeypatch, f"outcome.{function}", does)
    board = board_of_a_and_b(tmp_path)
    failed = board.report("a")
    assert failed["state"] == "failed"
    assert error in failed["error"]
    assert board.report("b")["state"] == "ready"
    assert board.runs()["a"]["state"] == "failed"


def test_a_worker_that_hangs_is_stopped_and_costs_only_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, pid = tmp_path / "hangs", tmp_path / "pid"
    hangs.touch()
    damage_worker(
        monkeypatch,
        "outcome.analyze_one",
        f"if os.path.exists({str(hangs)!r}):",
        f"    pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))",
        "    time.sleep(600)",
    )
    copy_of("event_files_only", tmp_path / "logs" / "c")
    board = board_of_a_and_b(tmp_path / "logs")
    assert board.report("c")["state"] == "ready"  # its process has begun
    with monkeypatch.context() as hurried:
        hurried.setattr(plugin_analyses, "PATIENCE_S", 5.0)
        failed = board.report("a")
    assert failed["state"] == "failed"
    assert "it had made no progress for" in failed["error"]
    assert happens(lambda: not is_alive(int(pid.read_text())))
    assert board.report("b")["state"] == "ready"
    hangs.unlink()
    assert board.answer("report", run="a")["state"] == "failed"
    assert board.answer("report", run="a", again="")["state"] == "waiting"
    assert board.report("a")["state"] == "ready"


def is_alive(pid: int) -> bool:
    """Whether it still works: a dead process may be listed until its parent reaps it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):  # it ended while it was read
        return False
    return "State:\tZ" not in status


def test_a_large_run_may_be_silent_for_longer() -> None:
    worker = Failing()
    analyses = Analyses(lambda: worker)
    for size in (0, 10**9):
        hosts = (HostFile("h", "h", "xplane", size),)
        settled(analyses, Run("a", "a", (ProfileSession("s", "s", hosts),), ()))
    small, large = worker.patience_s
    assert small >= 60
    assert large >= small + 600


def test_a_worker_that_cannot_start_is_a_failure_with_a_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", ("/no/such/python",))
    status = settled(Analyses(), run)
    assert status.state == "failed"
    assert "no process could be started" in str(status.error)


def test_the_report_says_that_a_file_vanished_before_it_was_read(tmp_path: Path) -> None:
    folder = copy_of("healthy", tmp_path / "logs")
    run = only_run(folder)
    (trace,) = folder.rglob("*.xplane.pb")
    trace.unlink()
    status = settled(Analyses(), run)
    assert status.analysis is not None
    texts = " ".join(note["text"] for note in status.analysis.report()["notes"])
    assert "cannot be read" in texts
