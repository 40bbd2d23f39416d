"""Each version of a run's files is analyzed once, outside the request thread, and only on
request."""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.chart import lanes
from stall_analyzer.chart.chart_columns import Chart
from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.discover.discover import discover
from stall_analyzer.files.caches import LIVE_S, version_of
from stall_analyzer.model.findings import Report
from stall_analyzer.model.runs import Run
from tb_stall_plugin.analyses import Analyses
from tests.patience import PATIENCE_S, happens
from tests.plugin.boards import Board, copy_of
from tests.plugin.workers import Counting, only_run, settled

# ---------------------------------------------------------------- once


def test_a_request_is_answered_at_once_and_later_with_the_result(run: Run) -> None:
    worker = Counting()
    worker.may_go_on.clear()
    analyses = Analyses(lambda: worker)
    first = analyses.status(run)
    assert first.state in {"waiting", "running"}
    assert first.analysis is None
    worker.may_go_on.set()
    assert settled(analyses, run).state == "ready"


def test_progress_is_what_the_worker_says(run: Run) -> None:
    worker = Counting()
    worker.may_go_on.clear()
    analyses = Analyses(lambda: worker)
    analyses.status(run)
    half_way = {"share": 0.5, "text": "half way"}
    assert happens(lambda: analyses.status(run).progress == half_way)
    worker.may_go_on.set()
    settled(analyses, run)


def test_a_report_is_shown_before_its_charts_are_made(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def slowly(report: Report) -> tuple[Chart, ...]:
        assert may_go_on.wait(PATIENCE_S)
        return charts_of(report)

    monkeypatch.setattr(lanes, "charts_of", slowly)
    analyses = Analyses(Counting)
    assert happens(lambda: analyses.status(run, urgent=True).state == "ready")
    early = analyses.status(run, urgent=True)
    assert early.progress is not None
    assert early.analysis is not None and not early.analysis.has_charts()
    may_go_on.set()
    late = settled(analyses, run, urgent=True)
    assert late.analysis is not None and late.analysis.has_charts()
    assert late.analysis.report() == early.analysis.report()
    assert late.changes == ()


def test_many_requests_at_once_share_one_analysis(run: Run) -> None:
    worker = Counting()
    analyses = Analyses(lambda: worker)
    threads = [threading.Thread(target=settled, args=(analyses, run)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(worker.runs) == 1


def test_the_next_tensorboard_finds_the_result_in_the_cache_folder(run: Run) -> None:
    first, second = Counting(), Counting()
    settled(Analyses(lambda: first), run)
    assert Analyses(lambda: second).status(run).state == "ready"
    assert second.runs == []


def test_an_emptied_cache_folder_is_filled_again(run: Run, tmp_path: Path) -> None:
    worker = Counting()
    analyses = Analyses(lambda: worker)
    settled(analyses, run)
    for folder in (tmp_path / "cache" / "results").iterdir():
        shutil.rmtree(folder)
    assert settled(analyses, run).state == "ready"
    assert len(worker.runs) == 2


def test_without_a_cache_folder_the_results_of_this_process_are_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("STALL_CACHE_DIR", str(tmp_path / "file"))
    assert settled(Analyses(Counting), run).state == "ready"


# ---------------------------------------------------------------- order


def test_the_cheapest_run_goes_first_unless_somebody_looks_at_another(tmp_path: Path) -> None:
    worker = Counting()
    worker.may_go_on.clear()
    analyses = Analyses(lambda: worker)
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
    assert happens(lambda: worker.runs)
    for name in ("large", "small"):
        analyses.status(runs[name])
    analyses.status(runs["looked at"], urgent=True)
    worker.may_go_on.set()
    for found in runs.values():
        settled(analyses, found)
    assert worker.runs == ["first", "looked at", "small", "large"]


# ---------------------------------------------------------------- versions


def test_a_version_identifies_the_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    before = version_of(run)
    assert version_of(only_run(folder)) == before
    (file,) = (folder / "train").iterdir()
    os.utime(file, (1, 1))
    assert version_of(only_run(folder)) != before


def test_a_run_that_has_fallen_silent_is_looked_at_once_more(run: Run) -> None:
    """Its files stay as they were, but what was said about a live run no longer holds."""
    live = replace(run, changed_unix_s=time.time())
    silent = replace(run, changed_unix_s=time.time() - 2 * LIVE_S)
    silent_for_long = replace(run, changed_unix_s=1.0)
    assert version_of(live) != version_of(silent) == version_of(silent_for_long)


def test_while_files_grow_the_last_result_stays_until_the_next_is_there(
    run: Run, tmp_path: Path
) -> None:
    worker = Counting()
    analyses = Analyses(lambda: worker)
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


# ---------------------------------------------------------------- a great many runs


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """Three runs, where two count as few."""
    monkeypatch.setattr("tb_stall_plugin.plugin.FEW_RUNS", 2)
    for name in "abc":
        copy_of("event_files_only", tmp_path / "logs" / name)
    return Board(str(tmp_path / "logs"))


def states(board: Board, **arguments: object) -> list[str]:
    return [run["state"] for run in board.answer("runs", **arguments)["runs"]]


def test_many_runs_are_not_analyzed_unasked(many: Board) -> None:
    assert states(many) == ["unread"] * 3
    assert all(run["progress"] is None for run in many.runs().values())
    time.sleep(0.1)
    assert states(many) == ["unread"] * 3


def test_of_many_runs_only_the_named_ones_are_analyzed(many: Board) -> None:
    states(many, run="b")
    assert happens(lambda: states(many) == ["unread", "ready", "unread"])
    assert many.report("c")["state"] == "ready"
    assert states(many) == ["unread", "ready", "ready"]


def test_many_runs_are_all_analyzed_on_request(many: Board) -> None:
    states(many, all="")
    assert happens(lambda: states(many) == ["ready"] * 3)


def test_what_is_in_the_cache_is_never_unread(many: Board, tmp_path: Path) -> None:
    many.report("a")
    assert states(Board(str(tmp_path / "logs"))) == ["ready", "unread", "unread"]


# ---------------------------------------------------------------- the folder


@pytest.mark.parametrize("name", ["*.result", "*.charts"])
def test_a_damaged_file_is_made_again(run: Run, tmp_path: Path, name: str) -> None:
    settled(Analyses(Counting), run, urgent=True)
    (damaged,) = (tmp_path / "cache").rglob(name)
    damaged.write_bytes(bytes(10))
    worker = Counting()
    status = settled(Analyses(lambda: worker), run, urgent=True)
    assert status.state == "ready"
    assert status.analysis is not None and status.analysis.has_charts()
    assert len(worker.runs) == 1


def test_a_result_that_cannot_be_stored_is_there_as_long_as_tensorboard_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr("tb_stall_plugin.analyses.results_folder", lambda: tmp_path / "file")
    analyses = Analyses(Counting)
    status = settled(analyses, run, urgent=True)
    assert status.state == "ready"
    assert status.analysis is not None and status.analysis.has_charts()
    assert status.analysis.report()["run"] == run.name
    assert analyses.status(run).state == "ready"


def test_a_failure_that_may_pass_is_retried_less_often_each_time(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Counting()
    analyses = Analyses(lambda: worker)
    gone = replace(run, event_files=(replace(run.event_files[0], path="/nowhere"),))
    settled(analyses, gone)
    now_s = time.monotonic()
    for after_s, tries in ((5, 1), (40, 2), (80, 2), (140, 3)):
        monkeypatch.setattr("tb_stall_plugin.analyses.time.monotonic", lambda s=after_s: now_s + s)
        assert settled(analyses, gone).state == "ready"
        assert len(worker.runs) == tries
