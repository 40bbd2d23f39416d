"""Whatever happens to stored results, the next request fixes it; nobody needs a cache."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.selection import Selection
from stall_analyzer.chart import chart_files
from stall_analyzer.results.result_store import ResultStore
from tb_stall_plugin import analyses, logs
from tests.batch.fleets import analyzed, copy_sample, lay_out, run_command
from tests.plugin.boards import Board
from tests.robust.bad_disk import BROKEN, FULL, BadDisk


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    """Damages it in place, as a bad disk does."""
    size = path.stat().st_size
    path.write_bytes(os.urandom(size))


DAMAGE = (shrink, empty, overwrite, Path.unlink)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STALL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(logs, "REMEMBERED_S", 0.0)
    return tmp_path / "cache"


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    return copy_sample("input_py_function", tmp_path / "logs")


def timeline(board: Board) -> dict[str, object]:
    """As the page asks for it: again, while it is being made."""
    answer = board.answer("timeline", run=".", start_ps=0, end_ps=10**12, pixels=100)
    if "state" in answer:
        assert answer["state"] == "running"
        board.report(".")
        answer = board.answer("timeline", run=".", start_ps=0, end_ps=10**12, pixels=100)
    return answer


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", [".result", ".charts"])
def test_a_damaged_cache_heals_in_one_request(
    own_cache: Path, logdir: Path, damage: Callable[[Path], None], kind: str
) -> None:
    first = Board(str(logdir))
    report, drawn = first.report("."), timeline(first)
    (path,) = own_cache.rglob(f"*{kind}")
    damage(path)
    for board in (first, Board(str(logdir))):  # one that has read it, and one that has not
        assert board.answer("report", run=".")["state"] in {"ready", "waiting", "running"}
        assert board.report(".")["report"] == report["report"]
        assert timeline(board)["lanes"] == drawn["lanes"]


def test_a_report_does_not_wait_until_its_charts_are_read(
    logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Board(str(logdir)).report(".")
    monkeypatch.setattr(chart_files, "load", None)
    answer = Board(str(logdir)).answer("report", run=".")
    assert (answer["state"], answer["progress"]) == ("ready", None)
    assert answer["version"] == before["version"]


def test_the_tab_keeps_nothing_that_may_pass(
    bad_disk: BadDisk, logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bad_disk.environment(".xplane.pb").items():  # of its worker
        monkeypatch.setenv(name, value)
    bad_disk.fail(BROKEN)
    board = Board(str(logdir))
    notes = board.report(".")["report"]["notes"]
    assert any("input/output error" in note["text"] for note in notes)
    bad_disk.heal()
    monkeypatch.setattr(analyses, "PASSES_WITHIN_S", 0.0)
    assert board.report(".")["report"]["verdict"]["primary"] == "input"


def test_a_full_disk_costs_the_cache_and_not_the_report(
    bad_disk: BadDisk, logdir: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bad_disk.environment(str(own_cache), writes=True).items():
        monkeypatch.setenv(name, value)
    bad_disk.fail(FULL)
    ran = run_command(logdir, "--json")
    document = json.loads(ran.stdout)
    assert document["runs"][0]["verdict"]["primary"] == "input"
    assert "No space left" in " ".join(note["text"] for note in document["notes"])
    assert ran.returncode == 0
    board = Board(str(logdir))
    assert board.report(".")["report"]["verdict"]["primary"] == "input"
    assert timeline(board)["lanes"]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_batch_makes_anew_what_was_damaged_before_it_was_written_out(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    lay_out(tmp_path / "runs", ["a", "b", "c"])
    store = tmp_path / "store"
    whole = list(analyzed(tmp_path / "runs", store)[0].lines())
    batch = Batch(ResultStore(store))
    batch.find([str(tmp_path / "runs")], Selection())
    assert batch.to_read == 0
    for path in store.rglob("*.result"):
        damage(path)
    assert list(batch.lines()) == whole


def test_a_cache_folder_that_goes_away_is_made_again(own_cache: Path, logdir: Path) -> None:
    board = Board(str(logdir))
    report = board.report(".")
    shutil.rmtree(own_cache)
    assert board.report(".")["report"] == report["report"]
