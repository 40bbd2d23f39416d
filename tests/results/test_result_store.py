"""How a result is identified, and when it is no longer valid."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from stall_analyzer.chart.chart_columns import Chart
from stall_analyzer.discover.discover import find_runs
from stall_analyzer.errors import UnreadableFile, UsageError
from stall_analyzer.files import caches
from stall_analyzer.files.caches import LIVE_S
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import Run
from stall_analyzer.outcome import Outcome, analyze_one, failure
from stall_analyzer.report.document_types import ReportEntry
from stall_analyzer.results.result_store import ResultStore
from stall_analyzer.results.run_result import analyze, result_of
from tests import event_files
from tests.batch.fleets import LONG_AGO_S, copy_sample, fake_run
from tests.real_documents import sample
from tests.test_events import MODEL


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "store")


def put(store: ResultStore, run: Run, entry: ReportEntry | None = None) -> None:
    store.put(run, result_of(run, Outcome(entry or sample("healthy"))))


def files_in(store: ResultStore) -> list[Path]:
    return [path for path in store.folder.rglob("*") if path.is_file()]


# ---------------------------------------------------------------- known


def test_an_unchanged_run_is_known(store: ResultStore) -> None:
    put(store, fake_run("a"))
    head = store.known(fake_run("a"))
    assert head is not None
    assert head.facts["sentence"] == sample("healthy")["verdict"]["sentence"]


@pytest.mark.parametrize(
    "changed",
    [
        fake_run("b"),
        fake_run("a", stamp="2"),
        replace(fake_run("a"), attempt=2),
        replace(fake_run("a"), event_files=()),
        replace(fake_run("a"), notes=(Note("warning", "A trace file is empty."),)),
    ],
)
def test_whatever_the_analysis_is_given_makes_another_run_of_it(
    store: ResultStore, changed: Run
) -> None:
    put(store, fake_run("a"))
    assert store.known(changed) is None


def test_another_analyzer_knows_nothing(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, fake_run("a"))
    monkeypatch.setattr(caches, "code_version", lambda: "another")
    assert store.known(fake_run("a")) is None


def test_real_files_are_told_by_their_time_and_size(store: ResultStore, tmp_path: Path) -> None:
    folder = copy_sample("event_files_only", tmp_path / "logs")
    (run,) = find_runs([str(folder)]).runs
    put(store, run)
    assert store.known(find_runs([str(folder)]).runs[0]) is not None
    (event_file,) = (folder / "train").iterdir()
    event_file.touch()
    assert store.known(find_runs([str(folder)]).runs[0]) is None


def test_a_file_system_that_tells_no_change_is_read_each_time(store: ResultStore) -> None:
    put(store, fake_run("a", stamp=""))
    assert store.known(fake_run("a", stamp="")) is None


# ---------------------------------------------------------------- not final


def test_a_run_that_may_still_be_going_on_is_read_again(store: ResultStore) -> None:
    now = time.time()
    put(store, fake_run("live", now - LIVE_S / 2))
    put(store, fake_run("over", now - LIVE_S * 2))
    assert store.known(fake_run("live", now - LIVE_S / 2)) is None
    assert store.known(fake_run("over", now - LIVE_S * 2)) is not None


def test_what_is_said_at_any_time_is_kept_at_once(store: ResultStore) -> None:
    now = time.time()
    live, over = fake_run("a", now - LIVE_S / 2), fake_run("a", now - LIVE_S * 2)
    store.put(live, result_of(live, Outcome(sample("healthy"), timeless=True)))
    assert store.known(live) is not None
    assert store.known(over) is not None  # the same files, ten minutes later
    assert store.known(replace(live, attempt=2)) is None


@pytest.mark.parametrize(
    ("name", "is_kept"), [("healthy", True), ("event_files_only", True), ("running", False)]
)
def test_a_run_whose_first_epoch_is_over_says_the_same_at_any_time(
    tmp_path: Path, name: str, is_kept: bool
) -> None:
    if name == "running":  # a model and a graph, and no epoch since
        folder = tmp_path / "train"
        folder.mkdir()
        model = event_files.record(event_files.model(MODEL))
        (folder / event_files.file_name()).write_bytes(model)
    else:
        copy_sample(name, tmp_path / "logs")
    (run,) = find_runs([str(tmp_path)]).runs
    assert analyze_one(run).timeless == is_kept


def test_a_file_that_could_not_be_reached_is_tried_again(store: ResultStore) -> None:
    run = fake_run("a")
    store.put(run, analyze(run))  # there is no such file
    assert store.known(run) is None


def test_a_file_that_is_no_trace_stays_one(store: ResultStore, tmp_path: Path) -> None:
    folder = copy_sample("compile_tracing", tmp_path / "logs")
    (trace,) = folder.rglob("*.xplane.pb")
    trace.write_bytes(b"rubbish" * 1000)
    os.utime(trace, (LONG_AGO_S, LONG_AGO_S))
    (run,) = find_runs([str(folder)]).runs
    outcome = analyze_one(run)
    assert any(note["level"] == "error" for note in outcome.entry["notes"])
    store.put(run, result_of(run, outcome))
    assert store.known(run) is not None


def test_a_failure_is_in_the_results_but_tried_again(store: ResultStore) -> None:
    run = fake_run("a")
    store.put(run, result_of(run, failure(run, "its process was killed")))
    assert store.known(run) is None
    assert "its process was killed" in store.entry(store.key(run))


# ---------------------------------------------------------------- the files


def test_a_newer_result_takes_the_place_of_the_older(store: ResultStore) -> None:
    put(store, fake_run("a", stamp="1"))
    put(store, fake_run("a", stamp="2"))
    assert len(files_in(store)) == 1
    assert store.known(fake_run("a", stamp="2")) is not None


@pytest.mark.parametrize("damage", [b"", b"not gzip", bytes(100)])
def test_a_damaged_file_is_as_good_as_none(store: ResultStore, damage: bytes) -> None:
    put(store, fake_run("a"))
    (path,) = files_in(store)
    path.write_bytes(damage)
    assert store.known(fake_run("a")) is None


def test_a_file_cut_anywhere_is_never_taken_for_another_result(store: ResultStore) -> None:
    put(store, fake_run("a"))
    (path,) = files_in(store)
    whole, head = path.read_bytes(), store.known(fake_run("a"))
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        assert store.known(fake_run("a")) in (None, head)


# Not the last byte before zlib's four of checksum: its upper bits may be padding.
@pytest.mark.parametrize("at", [3, 40, 400, -20, -2])
def test_a_changed_byte_is_noticed_and_the_result_dropped(store: ResultStore, at: int) -> None:
    put(store, fake_run("a"))
    (path,) = files_in(store)
    changed = bytearray(path.read_bytes())
    changed[at] ^= 4
    path.write_bytes(changed)
    if store.known(fake_run("a")) is not None:  # it is in the entry, of which nothing was read
        with pytest.raises(UnreadableFile):
            store.entry(path.stem)
        assert files_in(store) == []
    assert store.known(fake_run("a")) is None


def test_a_damaged_result_that_cannot_be_deleted_is_not_known_either(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, fake_run("a"))
    (path,) = files_in(store)
    path.write_bytes(path.read_bytes()[:-9] + b"different")
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(UnreadableFile):
        store.entry(path.stem)
    assert store.known(fake_run("a")) is None
    assert not store.has(path.stem)


def refused(*_: object, **__: object) -> NoReturn:
    raise PermissionError(13, "Permission denied")


def test_a_store_that_was_asked_for_and_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write to the store"):
        ResultStore(tmp_path / "file").check()


def test_what_no_pass_asked_for_in_months_is_forgotten(store: ResultStore) -> None:
    for name in ("old", "new"):
        put(store, fake_run(name))
    (old,) = [path for path in files_in(store) if path.name.startswith(store.key(fake_run("old")))]
    os.utime(old, (1, 1))
    store.prune()
    assert store.known(fake_run("old")) is None
    assert store.known(fake_run("new")) is not None


# ---------------------------------------------------------------- charts


def charts(host: str = "h") -> list[Chart]:
    return [Chart(host, 10, (), (), ())]


def put_with_charts(store: ResultStore, name: str, size: int = 0, used_s: float = 0) -> Path:
    run = fake_run(name)
    store.put(run, result_of(run, Outcome(sample("healthy"))), charts(name))
    (path,) = store.folder.rglob(f"{store.key(run)}.charts")
    if size:
        path.write_bytes(bytes(size))
        os.utime(path, (time.time() - used_s, time.time() - used_s))
    return path


def test_charts_are_there_until_the_run_changes(store: ResultStore) -> None:
    put_with_charts(store, "a")
    head = store.known(fake_run("a"))
    assert head is not None
    key = store.key(fake_run("a"))
    assert store.charts(key, head.version) == charts("a")
    assert store.charts(key, "another version") is None


def test_charts_cut_anywhere_are_as_good_as_none(store: ResultStore) -> None:
    path = put_with_charts(store, "a")
    whole, version = path.read_bytes(), store.head(path.stem).version
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.charts(path.stem, version) is None


def test_of_charts_those_used_last_are_kept_and_results_stay(store: ResultStore) -> None:
    paths = [put_with_charts(store, name, 600_000, age) for age, name in enumerate("abc")]
    store.prune(most_chart_bytes=1_000_000)
    assert [path.exists() for path in paths] == [True, False, False]
    store.prune(most_chart_bytes=1)
    assert [path.exists() for path in paths] == [True, False, False]
    assert all(store.known(fake_run(name)) is not None for name in "abc")


def test_what_was_being_written_is_not_left_behind(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    put(store, fake_run("a"))
    assert files_in(store) == []
    assert "No space left" in store.problem


def test_what_could_not_be_written_is_there_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = ResultStore(tmp_path / "file")
    put(store, fake_run("a"))
    assert "cannot write to the store" in store.problem
    key = store.key(fake_run("a"))
    assert json.loads(store.entry(key)) == sample("healthy")
    assert store.head(key).facts["sentence"] == sample("healthy")["verdict"]["sentence"]
