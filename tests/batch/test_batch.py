"""One pass over many runs: each read once, none twice, none lost, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.batch import batch as batch_module
from stall_analyzer.batch import parallel
from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.selection import Selection
from stall_analyzer.discover.discover import stream_runs
from stall_analyzer.errors import NothingFound
from stall_analyzer.model.runs import Run
from stall_analyzer.outcome import Outcome, analyze_one
from stall_analyzer.progress import Progress
from stall_analyzer.results.result_store import ResultStore
from stall_analyzer.results.run_result import RunResult, analyze, result_of
from stall_analyzer.results.worker_process import FOREVER_S, WorkerProcess
from tests.batch.fleets import (
    LONG_AGO_S,
    analyzed,
    command,
    copy_sample,
    fake_run,
    hold_from,
    lay_out,
    lines_of,
    names_of,
    run_command,
)
from tests.patience import PATIENCE_S, happens

# ---------------------------------------------------------------- incremental


def test_a_second_pass_reads_nothing_and_says_the_same(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "logs", ["b", "a/x", "a"])
    first, _ = analyzed(root, tmp_path / "store")
    second, heard = analyzed(root, tmp_path / "store")
    assert (first.to_read, second.to_read) == (3, 0)
    assert list(second.lines()) == list(first.lines())
    assert sorted(fact["run"] for fact in heard) == ["a", "a/x", "b"]


def test_only_what_has_changed_is_read_again(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "logs", ["a", "b"])
    analyzed(root, tmp_path / "store")
    (event_file,) = (root / "b" / "train").iterdir()
    os.utime(event_file, (LONG_AGO_S + 1, LONG_AGO_S + 1))
    copy_sample("event_files_only", root / "c")
    again, heard = analyzed(root, tmp_path / "store")
    assert again.to_read == 2
    assert len(heard) == 3


def test_a_run_that_is_gone_is_not_in_the_results(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "logs", ["a", "b"])
    analyzed(root, tmp_path / "store")
    (root / "b").rename(tmp_path / "elsewhere")
    again, _ = analyzed(root, tmp_path / "store")
    assert names_of(again.entries()) == ["a"]


def test_results_come_in_the_order_of_names_whatever_was_done_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["b", ".", "a/b", "a", "a-b"]
    found = [fake_run(name) for name in names] + [replace(fake_run("a"), attempt=2)]
    monkeypatch.setattr(batch_module, "stream_runs", lambda paths, notes: iter(found))
    batch, _ = analyzed(tmp_path, tmp_path / "store")
    entries = list(batch.entries())
    assert [(entry["run"], entry["attempt"]) for entry in entries] == [
        (".", 1), ("a", 1), ("a", 2), ("a/b", 1), ("a-b", 1), ("b", 1),
    ]  # fmt: skip


def test_the_entry_is_that_of_the_run_alone(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "logs", ["a"], sample="compile_tracing")
    batch = Batch(ResultStore(tmp_path / "store"))
    batch.find([str(root)], Selection())
    with parallel.in_processes(1) as engine:
        batch.analyze(engine)
    (run,) = stream_runs([str(root)], [])
    assert list(batch.lines()) == [json.dumps(analyze_one(run).entry)]


def test_nothing_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NothingFound, match="No training run found"):
        analyzed(tmp_path, tmp_path / "store")


# ---------------------------------------------------------------- what goes wrong


def misbehaves(run: Run, progress: Progress) -> RunResult:
    """Results by the name of the run."""
    if run.name.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if run.name.startswith("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if run.name.startswith("hang"):
        time.sleep(2 * PATIENCE_S)
    if run.name.startswith("raise"):
        raise RuntimeError("cursed")
    progress(0.5, "half way")
    entry = analyze_one(run).entry
    entry["evidence"] = {"process": str(os.getpid())}
    return result_of(run, Outcome(entry))


def notes_after_misbehaviour(names: list[str], deadline_s: float = FOREVER_S) -> dict[str, str]:
    said = {}
    with parallel.in_processes(2, deadline_s) as engine:
        for run, result in engine(map(fake_run, names), misbehaves):
            entry = json.loads(result.entry)
            said[run.name] = " ".join(note["text"] for note in entry["notes"])
    assert sorted(said) == sorted(names)
    return said


def test_a_process_that_dies_costs_only_its_own_run() -> None:
    said = notes_after_misbehaviour(["a", "crash", "b", "killed", "raise", "c"])
    assert "could not be analyzed: its process crashed (Segmentation fault)" in said["crash"]
    assert "its process was killed, perhaps because memory ran out" in said["killed"]
    assert "RuntimeError: cursed" in said["raise"]
    assert all("could not be analyzed" not in said[name] for name in "abc")


class Hurried(WorkerProcess):
    """Only with what hangs: on a busy machine, the others may take any time."""

    def do(self, work: Any, run: Run, *more: Any, **named: Any) -> Any:
        if run.name != "hang":
            named["deadline_s"] = FOREVER_S
        return super().do(work, run, *more, **named)


def test_a_run_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WorkerProcess", Hurried)
    said = notes_after_misbehaviour(["hang", "a", "b"], deadline_s=2.0)
    assert "it took longer than 2 s (--deadline)" in said["hang"]
    assert "could not be analyzed" not in said["a"] + said["b"]


def is_killed_the_first_time(run: Run, progress: Progress, marks: Path) -> RunResult:
    mark = marks / run.name
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return analyze(run)


def test_a_killed_run_is_tried_once_more_when_the_others_are_done(tmp_path: Path) -> None:
    work = partial(is_killed_the_first_time, marks=tmp_path)
    with parallel.in_processes(1) as engine:
        results = list(engine(map(fake_run, ("first", "second")), work))
    assert [run.name for run, _ in results] == ["first", "second"]
    assert all("its process" not in result.entry for _, result in results)


def test_the_work_is_done_in_other_processes_and_their_progress_is_heard() -> None:
    heard: list[tuple[str, float]] = []

    def watch(run: Run, share: float) -> None:
        heard.append((run.name, share))

    with parallel.in_processes(1, watch=watch) as engine:
        ((_, result),) = engine([fake_run("a")], misbehaves)
    assert json.loads(result.entry)["evidence"]["process"] != str(os.getpid())
    assert ("a", 0.5) in heard


# ---------------------------------------------------------------- killed half-way


def test_a_pass_that_was_killed_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole program, ended by a signal that it cannot see coming."""
    go_on = hold_from("run-10", tmp_path, monkeypatch)
    names = [f"run-{number:02d}" for number in range(30)]
    root = lay_out(tmp_path / "logs", names, sample="compile_tracing")
    store, output = tmp_path / "store", tmp_path / "all.jsonl"
    arguments = (root, "--store", store, "--jobs", "2", "--jsonl", output)

    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert happens(lambda: len(results_in(store)) >= 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = results_in(store)
    assert 5 <= len(kept) < len(names)
    assert not output.exists()
    times = {path: path.stat().st_mtime_ns for path in kept}

    go_on.touch()
    finished = run_command(*arguments)
    assert finished.returncode == 0, finished.stderr
    assert f"30 runs: {30 - len(kept)} to read, {len(kept)} unchanged" in finished.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == times  # none was made again
    assert names_of(lines_of(output)) == names

    undisturbed = tmp_path / "undisturbed.jsonl"
    run_command(root, "--store", tmp_path / "other", "--jsonl", undisturbed)
    assert output.read_bytes() == undisturbed.read_bytes()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_an_interrupted_pass_ends_at_once_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_from("run-05", tmp_path, monkeypatch)
    root = lay_out(tmp_path / "logs", [f"run-{i:02d}" for i in range(20)], sample="compile_tracing")
    store = tmp_path / "store"
    process = subprocess.Popen(
        command(root, "--store", store, "--jobs", "2"), stderr=subprocess.PIPE, text=True
    )
    assert happens(lambda: results_in(store))
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(pid) for task in tasks for pid in task.read_text().split()]
    process.send_signal(signal.SIGINT)  # to it alone, as a batch system would
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert said.endswith("stall-analyze: interrupted\n")
    assert len(children) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


def results_in(store: Path) -> list[Path]:
    return sorted(store.glob("*/[0-9a-f]*.result"))
