"""Once per version of the files, off the request thread, and whatever goes wrong is said."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.caches import LIVE_S
from stall_analyzer.chart import charts_of
from stall_analyzer.discover import discover
from stall_analyzer.model import HostFile, Run, Session
from stall_analyzer.outcome import analyze_one
from tb_stall_plugin import cache, work
from tb_stall_plugin.analyses import Analyses, Status
from tb_stall_plugin.cache import Cache, version_of
from tb_stall_plugin.work import Worker, WorkFailed
from tests.plugin.boards import PATIENCE_S, Board, copy_of


class Counting(Worker):
    """Analyses in this process, when it may, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.started = self.closed = 0
        self.runs: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def start(self) -> None:
        self.started += 1

    def close(self) -> None:
        self.closed += 1

    def analyze(self, run: Run, folder: Path, progress: Callable[[float, str], None]) -> None:
        self.runs.append(run.name)
        progress(0.5, "half way")
        assert self.may_go_on.wait(PATIENCE_S)
        outcome = analyze_one(run, charts_of)
        cache.write(folder, outcome.entry, outcome.also)


class Failing(Counting):
    def analyze(self, run: Run, folder: Path, progress: Callable[[float, str], None]) -> None:
        raise WorkFailed("it is cursed")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return only_run(copy_of("event_files_only", tmp_path / "logs"))


def only_run(folder: Path) -> Run:
    (found,) = discover([str(folder)]).runs
    return found


def settled(analyses: Analyses, run: Run) -> Status:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        status = analyses.status(run)
        if status.progress is None:
            return status
        time.sleep(0.01)
    raise AssertionError("the analysis does not end")


# ---------------------------------------------------------------- once


def test_a_question_is_answered_at_once_and_later_with_the_result(run: Run) -> None:
    worker = Counting()
    worker.may_go_on.clear()
    analyses = Analyses(Cache(), lambda: worker)
    first = analyses.status(run)
    assert first.state in {"waiting", "running"}
    assert first.analysis is None
    worker.may_go_on.set()
    assert settled(analyses, run).state == "ready"


def test_progress_is_what_the_worker_says(run: Run) -> None:
    worker = Counting()
    worker.may_go_on.clear()
    analyses = Analyses(Cache(), lambda: worker)
    analyses.status(run)
    while not worker.runs:
        time.sleep(0.01)
    assert analyses.status(run).progress == {"share": 0.5, "text": "half way"}
    worker.may_go_on.set()
    settled(analyses, run)


def test_many_who_ask_at_once_share_one_analysis(run: Run) -> None:
    worker = Counting()
    analyses = Analyses(Cache(), lambda: worker)
    threads = [threading.Thread(target=settled, args=(analyses, run)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(worker.runs) == 1


def test_the_next_tensorboard_finds_the_result_in_the_cache_folder(run: Run) -> None:
    first, second = Counting(), Counting()
    settled(Analyses(Cache(), lambda: first), run)
    assert Analyses(Cache(), lambda: second).status(run).state == "ready"
    assert second.runs == []


def test_an_emptied_cache_folder_is_filled_again(run: Run, tmp_path: Path) -> None:
    worker = Counting()
    analyses = Analyses(Cache(), lambda: worker)
    settled(analyses, run)
    for folder in (tmp_path / "cache" / "analyses").iterdir():
        shutil.rmtree(folder)
    assert settled(analyses, run).state == "ready"
    assert len(worker.runs) == 2


def test_without_a_cache_folder_the_results_of_this_process_are_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("STALL_CACHE_DIR", str(tmp_path / "file"))
    assert settled(Analyses(Cache(), Counting), run).state == "ready"


# ---------------------------------------------------------------- the worker


def happens(what: Callable[[], object]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False


def test_a_worker_can_start_before_the_first_question(run: Run) -> None:
    worker = Counting()
    analyses = Analyses(Cache(), lambda: worker)
    analyses.warm_up()
    assert happens(lambda: worker.started)
    assert worker.runs == []
    assert settled(analyses, run).state == "ready"
    assert worker.started == 1


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a worker makes when it starts."""
    path = tmp_path / "mark"
    monkeypatch.setattr(work, "COMMAND", (work.COMMAND[0], "-c", f"open({str(path)!r}, 'w')"))
    return path


def test_the_worker_starts_with_tensorboards_page_where_there_are_logs(
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


def test_a_worker_waits_for_the_next_question_for_a_while(
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

    analyses = Analyses(Cache(), new_worker)
    read_anew(1)
    read_anew(2)
    assert [len(worker.runs) for worker in workers] == [2]
    monkeypatch.setattr("tb_stall_plugin.analyses.IDLE_S", 0.01)
    read_anew(3)
    assert happens(lambda: workers[0].closed)
    read_anew(4)
    assert [len(worker.runs) for worker in workers] == [3, 1]


# ---------------------------------------------------------------- order


def test_the_cheapest_goes_first_and_who_is_looked_at_before_it(tmp_path: Path) -> None:
    worker = Counting()
    worker.may_go_on.clear()
    analyses = Analyses(Cache(), lambda: worker)
    runs = {}
    for name, sample in (
        ("first", "event_files_only"),
        ("large", "numerics_nan"),
        ("small", "event_files_only"),
        ("looked at", "healthy"),
    ):
        copy_of(sample, tmp_path / "logs" / name)
    for found in discover([str(tmp_path / "logs")]).runs:
        runs[found.name] = found
    analyses.status(runs["first"])
    while not worker.runs:
        time.sleep(0.01)
    for name in ("large", "small"):
        analyses.status(runs[name])
    analyses.status(runs["looked at"], urgent=True)
    worker.may_go_on.set()
    for found in runs.values():
        settled(analyses, found)
    assert worker.runs == ["first", "looked at", "small", "large"]


# ---------------------------------------------------------------- versions


def test_a_version_is_of_the_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    before = version_of(run)
    assert version_of(only_run(folder)) == before
    (file,) = (folder / "train").iterdir()
    os.utime(file, (1, 1))
    assert version_of(only_run(folder)) != before


def test_a_run_that_has_fallen_silent_is_looked_at_once_more(run: Run) -> None:
    """Its files stay as they were, but what was said about a live run does not hold any more."""
    live = replace(run, changed_unix_s=time.time())
    silent = replace(run, changed_unix_s=time.time() - 2 * LIVE_S)
    silent_for_long = replace(run, changed_unix_s=1.0)
    assert version_of(live) != version_of(silent) == version_of(silent_for_long)


def test_while_files_grow_the_last_result_stays_until_the_next_is_there(
    run: Run, tmp_path: Path
) -> None:
    worker = Counting()
    analyses = Analyses(Cache(), lambda: worker)
    before = settled(analyses, run)
    worker.may_go_on.clear()
    (file,) = (tmp_path / "logs" / "train").iterdir()
    os.utime(file, (1, 1))
    run = only_run(tmp_path / "logs")
    meanwhile = analyses.status(run)
    assert meanwhile.state == "ready"
    assert meanwhile.progress is not None
    assert meanwhile.analysis is before.analysis
    worker.may_go_on.set()
    after = settled(analyses, run)
    assert after.analysis is not None and before.analysis is not None
    assert after.analysis.version != before.analysis.version


def test_new_data_appears_on_reload(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    source = copy_of("numerics_nan", tmp_path / "source")
    shutil.copytree(source / "train", logs / "a" / "train")
    board = Board(str(logs))
    assert board.report("a")["report"]["window"]["source"] == "events"
    shutil.copytree(source / "plugins", logs / "a" / "plugins")
    shutil.copytree(source, logs / "b")
    assert board.report("a")["report"]["window"]["source"] == "both"
    assert sorted(board.runs()) == ["a", "b"]


# ---------------------------------------------------------------- what goes wrong


def test_a_failure_is_told_and_not_stored(run: Run) -> None:
    status = settled(Analyses(Cache(), Failing), run)
    assert (status.state, status.error) == ("failed", "it is cursed")
    assert settled(Analyses(Cache(), Counting), run).state == "ready"


def test_an_analysis_that_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of("event_files_only", tmp_path / "a")
    copy_of("event_files_only", tmp_path / "b")
    script = (
        "import sys, stall_analyzer.outcome as outcome\n"
        "real = outcome.analyze\n"
        "def analyze(run, *more):\n"
        "    if run.name == 'a': raise RuntimeError('lost')\n"
        "    return real(run, *more)\n"
        "outcome.analyze = analyze\n"
        "from tb_stall_plugin.worker import main\n"
        "main()\n"
    )
    monkeypatch.setattr(work, "COMMAND", (work.COMMAND[0], "-c", script))
    board = Board(str(tmp_path))
    failed = board.report("a")
    assert failed["state"] == "failed"
    assert "RuntimeError: lost" in failed["error"]
    assert board.report("b")["state"] == "ready"
    assert board.runs()["a"]["state"] == "failed"


def test_a_worker_that_is_killed_costs_only_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of("event_files_only", tmp_path / "a")
    copy_of("event_files_only", tmp_path / "b")
    script = (
        "import os, tb_stall_plugin.worker as worker\n"
        "real = worker.analyze_one\n"
        "def analyze_one(run, *more):\n"
        "    if run.name == 'a': os.kill(os.getpid(), 9)\n"
        "    return real(run, *more)\n"
        "worker.analyze_one = analyze_one\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(work, "COMMAND", (work.COMMAND[0], "-c", script))
    board = Board(str(tmp_path))
    failed = board.report("a")
    assert failed["state"] == "failed"
    assert "signal 9" in failed["error"]
    assert board.report("b")["state"] == "ready"


def test_a_worker_that_hangs_is_stopped_and_costs_only_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of("event_files_only", tmp_path / "logs" / "a")
    copy_of("event_files_only", tmp_path / "logs" / "b")
    hangs, pid = tmp_path / "hangs", tmp_path / "pid"
    hangs.touch()
    script = (
        "import os, pathlib, time, tb_stall_plugin.worker as worker\n"
        "real = worker.analyze_one\n"
        "def analyze_one(run, *more):\n"
        f"    if run.name == 'a' and os.path.exists({str(hangs)!r}):\n"
        f"        pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "    return real(run, *more)\n"
        "worker.analyze_one = analyze_one\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(work, "COMMAND", (work.COMMAND[0], "-c", script))
    monkeypatch.setattr(work, "PATIENCE_S", 10.0)
    board = Board(str(tmp_path / "logs"))
    failed = board.report("a")
    assert failed["state"] == "failed"
    assert "it had not moved for" in failed["error"]
    assert happens(lambda: not is_alive(int(pid.read_text())))
    assert board.report("b")["state"] == "ready"
    hangs.unlink()
    assert board.answer("report", run="a")["state"] == "failed"
    assert board.answer("report", run="a", again="")["state"] == "waiting"
    assert board.report("a")["state"] == "ready"


def is_alive(pid: int) -> bool:
    """Whether it still works: one that is dead may be listed until its parent looks."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):  # it ended while it was read
        return False
    return "State:\tZ" not in status


def test_a_large_run_may_be_silent_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    class Silent:
        def tell(self, job: object) -> None: ...

        def hear(self, within_s: float) -> bytes:
            heard.append(within_s)
            return b'{"done": true}'

    monkeypatch.setattr(work, "_Process", Silent)
    for size in (0, 10**9):
        hosts = (HostFile("h", "h", "xplane", size),)
        Worker().analyze(Run("a", "a", (Session("s", "s", hosts),), ()), Path(), lambda *_: None)
    small, large = heard
    assert small >= 60
    assert large >= small + 600


def test_a_worker_that_cannot_start_is_a_failure_with_a_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "COMMAND", ("/no/such/python",))
    status = settled(Analyses(Cache()), run)
    assert status.state == "failed"
    assert "No process could be started" in str(status.error)


def test_a_file_that_vanishes_before_it_is_read_is_told_in_the_report(tmp_path: Path) -> None:
    folder = copy_of("healthy", tmp_path / "logs")
    run = only_run(folder)
    (trace,) = folder.rglob("*.xplane.pb")
    trace.unlink()
    status = settled(Analyses(Cache()), run)
    assert status.analysis is not None
    texts = " ".join(note["text"] for note in status.analysis.report()["notes"])
    assert "cannot be read" in texts


# ---------------------------------------------------------------- a great many runs


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """Three, where two would be few."""
    monkeypatch.setattr("tb_stall_plugin.plugin.FEW_RUNS", 2)
    for name in "abc":
        copy_of("event_files_only", tmp_path / "logs" / name)
    return Board(str(tmp_path / "logs"))


def states(board: Board, **arguments: object) -> list[str]:
    return [run["state"] for run in board.answer("runs", **arguments)["runs"]]


def test_of_many_runs_none_is_analysed_unasked(many: Board) -> None:
    assert states(many) == ["unread"] * 3
    assert all(run["progress"] is None for run in many.runs().values())
    time.sleep(0.1)
    assert states(many) == ["unread"] * 3


def test_of_many_runs_those_that_are_named_are_analysed(many: Board) -> None:
    states(many, run="b")
    assert happens(lambda: states(many) == ["unread", "ready", "unread"])
    assert many.report("c")["state"] == "ready"
    assert states(many) == ["unread", "ready", "ready"]


def test_many_runs_are_all_analysed_on_request(many: Board) -> None:
    states(many, all="")
    assert happens(lambda: states(many) == ["ready"] * 3)


def test_what_is_in_the_cache_is_never_unread(many: Board, tmp_path: Path) -> None:
    many.report("a")
    assert states(Board(str(tmp_path / "logs"))) == ["ready", "unread", "unread"]


# ---------------------------------------------------------------- the folder


def test_what_was_not_used_for_long_is_forgotten(tmp_path: Path) -> None:
    folder = Cache().place("x").parent
    for age, name in enumerate(("new", "old", "oldest")):
        (folder / name).mkdir()
        (folder / name / "known.json").write_bytes(bytes(600_000))
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    Cache().prune(most_bytes=1_000_000)
    assert [path.name for path in folder.iterdir()] == ["new"]
    Cache().prune(most_bytes=1)
    assert [path.name for path in folder.iterdir()] == ["new"]


def test_a_damaged_entry_is_made_again(run: Run, tmp_path: Path) -> None:
    settled(Analyses(Cache(), Counting), run)
    (known,) = (tmp_path / "cache").rglob("known.json")
    known.write_bytes(bytes(10))
    worker = Counting()
    assert settled(Analyses(Cache(), lambda: worker), run).state == "ready"
    assert len(worker.runs) == 1


def test_an_analysis_is_stored_whole_or_not_at_all(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    outcome = analyze_one(run, charts_of)
    monkeypatch.setattr(cache, "facts_of", full)
    with pytest.raises(OSError, match="no space left"):
        cache.write(tmp_path / "stored", outcome.entry, outcome.also)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]
