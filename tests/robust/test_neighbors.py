"""Others use the same cache or files: nothing is lost, and nobody sees half of anything."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.outcome import analyze_one
from stall_analyzer.results.result_store import ResultStore
from stall_analyzer.results.run_result import analyze
from tb_stall_plugin import logs
from tests.batch.fleets import command, copy_sample, lay_out
from tests.plugin.boards import Board

OUR_FAULT = "bug in stall-analyze"


def test_two_commands_on_one_cache_give_the_same_bytes(tmp_path: Path) -> None:
    lay_out(tmp_path / "logs", [f"run{i}" for i in range(6)])
    options = ("--store", tmp_path / "store", "--jobs", "2", "--jsonl")
    together = [
        subprocess.Popen(
            command(tmp_path / "logs", *options, tmp_path / f"{i}.jsonl"),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        for i in range(2)
    ]  # fmt: skip
    said = [process.communicate()[1] for process in together]
    assert [process.returncode for process in together] == [0, 0], said
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()
    assert len(list((tmp_path / "store").rglob("*.result"))) == 6
    assert not list((tmp_path / "store").rglob("*.partial"))


def test_two_tensorboards_on_one_cache_show_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STALL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(logs, "REMEMBERED_S", 0.0)
    folder = copy_sample("input_py_function", tmp_path / "logs")
    boards = [Board(str(folder)), Board(str(folder))]
    for board in boards:
        board.answer("report", run=".")  # both begin
    first, second = (board.report(".") for board in boards)
    assert first["report"] == second["report"]


def test_readers_never_see_half_a_result(tmp_path: Path) -> None:
    copy_sample("event_files_only", tmp_path / "logs")
    (run,) = find_runs([str(tmp_path / "logs")]).runs
    result = analyze(run)
    store = ResultStore(tmp_path / "store")
    store.put(run, result)
    enough = threading.Event()

    def put_again_and_again() -> None:
        while not enough.is_set():
            ResultStore(tmp_path / "store").put(run, result)

    writers = [threading.Thread(target=put_again_and_again) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(300):
            assert store.known(run) == result.head
            assert store.entry(store.key(run)) == result.entry
    finally:
        enough.set()
        for writer in writers:
            writer.join()


@pytest.mark.parametrize("change", ["shrinks", "grows", "is replaced", "goes away"])
def test_files_that_change_under_the_reader(tmp_path: Path, change: str) -> None:
    """Between the listing and the reading: the run is answered, and not kept as it was listed."""
    folder = copy_sample("input_py_function", tmp_path / "logs")
    (run,) = find_runs([str(folder)]).runs
    store = ResultStore(tmp_path / "store")
    for path in [*folder.rglob("*.xplane.pb"), *folder.rglob("*tfevents*")]:
        if change == "shrinks":
            os.truncate(path, path.stat().st_size // 2)
        elif change == "grows":
            path.write_bytes(path.read_bytes() * 2)
        elif change == "is replaced":
            shutil.copy(__file__, path)
        else:
            path.unlink()
    result = analyze(run)
    assert not result.head.traceback
    assert OUR_FAULT not in result.entry
    store.put(run, result)
    for now in find_runs([str(folder)]).runs:
        assert store.known(now) is None


def test_a_trace_that_shrinks_while_it_is_decoded_is_read_up_to_there(tmp_path: Path) -> None:
    folder = copy_sample("compile_tracing", tmp_path / "logs")
    (run,) = find_runs([str(folder)]).runs
    (trace,) = folder.rglob("*.xplane.pb")

    def shrink(share: float, text: str) -> None:
        if "trace" in text:
            os.truncate(trace, 5_000)

    outcome = analyze_one(run, progress=shrink)
    assert not outcome.traceback
    assert OUR_FAULT not in " ".join(note["text"] for note in outcome.entry["notes"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_leaves_no_traceback_and_nothing_half_written(
    tmp_path: Path, number: signal.Signals
) -> None:
    lay_out(tmp_path / "logs", [f"run{i}" for i in range(30)], sample="compile_tracing")
    store, out = tmp_path / "store", tmp_path / "out.jsonl"
    process = subprocess.Popen(
        command(tmp_path / "logs", "--store", store, "--jobs", "2", "--jsonl", out),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    while process.poll() is None and not list(store.rglob("*.result")):
        time.sleep(0.01)
    os.killpg(process.pid, number)
    _, said = process.communicate()
    assert b"Traceback" not in said
    assert process.returncode != 0
    assert not out.exists()
    assert not list(tmp_path.glob("*.partial"))
