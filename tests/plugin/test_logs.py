"""Whatever TensorBoard can be told to look at, and whatever may be there."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.discover.discover import Discovery
from tb_stall_plugin import logs
from tb_stall_plugin.logs import Logs
from tests.logdirs import NOON, write_session
from tests.plugin.boards import SAMPLES, Board, copy_of
from tests.traces import call, clock, event, host
from tests.xspace import space


def test_a_relative_logdir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES.parent)
    board = Board(SAMPLES.name)
    assert board.report("healthy")["report"]["verdict"]["status"] == "healthy"


def test_a_logdir_that_is_a_run_is_called_dot() -> None:
    board = Board(str(SAMPLES / "healthy"))
    assert list(board.runs()) == ["."]
    assert board.report(".")["state"] == "ready"


def test_several_logdirs_with_names() -> None:
    spec = f"good:{SAMPLES / 'healthy'},bad:{SAMPLES}"
    runs = Logs("", spec).find().runs
    assert "good" in runs
    assert "bad/numerics_nan" in runs


def test_several_logdirs_without_names() -> None:
    runs = Logs("", f"{SAMPLES / 'healthy'},{SAMPLES / 'numerics_nan'}").find().runs
    assert list(runs) == ["healthy", "numerics_nan"]


@pytest.mark.parametrize(
    ("spec", "roots"),
    [
        ("a:/x", [("a", "/x")]),
        ("/x:y", [("", "/x:y")]),
        ("gs://bucket/x", [("", "gs://bucket/x")]),
        ("a:gs://bucket/x,/y", [("a", "gs://bucket/x"), ("", "/y")]),
        ("", []),
    ],
)
def test_a_spec_is_parsed_as_in_tensorboard(spec: str, roots: list[tuple[str, str]]) -> None:
    assert Logs("", spec)._roots == roots


@pytest.mark.parametrize("logdir", ["", "no/such/folder", "~nobody_at_all/logs", "nowhere://x"])
def test_a_logdir_without_anything_gives_an_empty_list(logdir: str) -> None:
    board = Board(logdir)
    assert board.answer("runs")["runs"] == []
    assert board.get("/data/plugins_listing").get_json()["stall"]["enabled"] is False


def test_a_missing_logdir_is_reported_as_a_problem(tmp_path: Path) -> None:
    (problem,) = Board(str(tmp_path / "gone")).answer("runs")["problems"]
    assert problem["level"] == "error"
    assert "does not exist" in problem["text"]


def test_a_run_without_event_files(tmp_path: Path) -> None:
    run = copy_of("healthy", tmp_path / "logs" / "a")
    shutil.rmtree(run / "train")
    board = Board(str(tmp_path / "logs"))
    assert board.get("/data/plugins_listing").get_json()["stall"]["enabled"] is True
    assert board.report("a")["report"]["window"]["source"] == "trace"


def test_hostile_names_come_back_as_they_are(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>&'\"\u202e😀"
    copy_of("event_files_only", tmp_path / name)
    board = Board(str(tmp_path))
    assert list(board.runs()) == [name]
    assert board.report(name)["state"] == "ready"


def test_a_name_that_is_not_valid_text_can_be_sent_and_requested(tmp_path: Path) -> None:
    copy_of("event_files_only", tmp_path / os.fsdecode(b"run-\xff"))
    board = Board(str(tmp_path))
    (name,) = board.runs()
    assert name == "run-\\udcff"
    assert board.report(name)["state"] == "ready"


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "x" * 1_000_000, "\u202e\x00\ud7ff😀", '"; DROP TABLE'],
    ids=["html", "long", "unicode", "quotes"],
)
def test_hostile_names_in_a_trace_are_plain_text(tmp_path: Path, name: str) -> None:
    thread = ("python", [*call(0, 50, 1), event(name, 1, 49), *call(50, 60, 2)])
    write_session(tmp_path / "a", host=space(host(thread), clock(NOON * 10**9, 0.1)))
    board = Board(str(tmp_path))
    duration = board.report("a")["report"]["window"]["duration_ps"]
    answer = board.answer("timeline", run="a", start_ps=0, end_ps=duration, pixels=100)
    shown = name if len(name) <= 300 else name[:299] + "…"
    assert shown in answer["names"]
    assert board.answer("search", run="a", text=name[:20])["hits"]


def test_a_name_of_a_megabyte_does_not_fill_the_report(tmp_path: Path) -> None:
    """A function is traced again and again: findings contain its name, several times each."""
    name = "<b>" * 333_333
    calls = [
        replace(part, name=name) if part.name == "train_step" else part
        for i in range(20)
        for part in call(50 * i, 50 * i + 45, i + 1, traced_ms=40, count=i + 1)
    ]
    trace = space(host(("python", calls)), clock(NOON * 10**9, 1.0))
    write_session(tmp_path / "a", host=trace)
    answer = Board(str(tmp_path)).report("a")
    assert any("<b><b>" in finding["title"] for finding in answer["report"]["findings"])
    assert len(json.dumps(answer)) < 100_000


def test_a_run_with_several_hosts(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        thread = (f"python {name}", [*call(0, 50 + number, 1), *call(60, 70, 2)])
        write_session(tmp_path / "a", **{name: space(host(thread), clock(NOON * 10**9, 0.1))})
    board = Board(str(tmp_path))
    board.report("a")
    for name in board.runs()["a"]["hosts"]:
        answer = board.answer("timeline", run="a", host=name, start_ps=0, end_ps=10**9, pixels=9)
        assert answer["host"] == name
        assert f"training thread python {name}" in {lane["title"] for lane in answer["lanes"]}


def test_two_attempts_in_a_folder_are_two_runs(tmp_path: Path) -> None:
    run = copy_of("event_files_only", tmp_path / "a")
    (file,) = (run / "train").iterdir()
    stamp = file.name.split(".")[3]
    later = file.name.replace(stamp, str(int(stamp) + 1000)).replace(".17949.", ".20000.")
    shutil.copy(file, file.with_name(later))
    assert list(Board(str(tmp_path)).runs()) == ["a", "a (attempt 2)"]


def test_folders_that_take_long_to_search_are_searched_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = 0.0, 0

    def find_runs(paths: list[str]) -> Discovery:
        nonlocal now, looks
        now, looks = now + 2.0, looks + 1
        return Discovery(())

    monkeypatch.setattr(logs, "REMEMBERED_S", 1.0)
    monkeypatch.setattr(logs, "REMEMBERED_LOOKS", 10)
    monkeypatch.setattr(logs, "find_runs", find_runs)
    monkeypatch.setattr("tb_stall_plugin.logs.time.monotonic", lambda: now)
    found = Logs(str(tmp_path))
    for seconds_later in (0, 1, 15):
        now += seconds_later
        found.find()
    assert looks == 1
    now += 10
    found.find()
    assert looks == 2
    now += 1
    found.find(fresh=True)
    assert looks == 3
