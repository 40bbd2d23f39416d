"""A Dask cluster of separate processes gives the same bytes, whatever dies on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from stall_analyzer.batch import parallel
from stall_analyzer.errors import ClusterError, UsageError
from stall_analyzer.model.runs import Run
from stall_analyzer.results import run_result
from stall_analyzer.results.run_result import RunResult
from tests.batch.dask_cluster import cluster, variables
from tests.batch.fleets import command, fake_run, hold_from, lay_out, run_command
from tests.patience import PATIENCE_S, happens

pytest.importorskip("distributed", reason="Dask comes with the extra [cluster]")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(workers=2) as (address, _):
        yield address


def test_results_are_the_same_to_the_byte(address: str, tmp_path: Path) -> None:
    root = lay_out(tmp_path / "logs", ["a", "b/c"], sample="compile_tracing")
    lay_out(root, ["d"], sample="event_files_only")
    outputs = []
    for name, more in (("here", []), ("there", ["--scheduler", address])):
        output = tmp_path / f"{name}.jsonl"
        finished = run_command(root, "--store", tmp_path / name, "--jsonl", output, *more)
        assert finished.returncode == 0, finished.stderr
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 3


def test_relative_paths_begin_where_the_command_was_given(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path / "logs", ["a"])
    monkeypatch.setenv("PYTHONPATH", variables()["PYTHONPATH"])
    monkeypatch.chdir(tmp_path)
    finished = run_command("logs", "--scheduler", address, "--json")
    assert finished.returncode == 0, finished.stderr


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    names = [f"run-{number:02d}" for number in range(24)]
    root = lay_out(tmp_path / "logs", names, sample="compile_tracing")
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    store = tmp_path / "there"
    with cluster(workers=2) as (address, workers):
        job = subprocess.Popen(
            command(root, "--scheduler", address, "--store", store, "--jsonl", there),
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert happens(lambda: len(list(store.glob("*/[0-9a-f]*.result"))) >= 4)
        workers[0].send_signal(signal.SIGKILL)
        _, said = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, said
    run_command(root, "--store", tmp_path / "here", "--jsonl", here)
    assert there.read_bytes() == here.read_bytes()


def test_no_scheduler_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CONNECT_WITHIN_S", 1)
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1"),
        parallel.on_cluster("tcp://127.0.0.1:1"),
    ):
        pass


def test_workers_of_another_version_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "code_version", lambda: f"version {os.getpid()}")
    with (
        pytest.raises(ClusterError, match=r"the workers have a different version of stall-analyze"),
        parallel.on_cluster(address),
    ):
        pass


def test_a_lost_scheduler_keeps_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_from("run-05", tmp_path, monkeypatch)
    names = [f"run-{number:02d}" for number in range(20)]
    root = lay_out(tmp_path / "logs", names, sample="compile_tracing")
    store = tmp_path / "store"
    with ExitStack() as running:
        address, _ = running.enter_context(cluster(workers=1))
        job = subprocess.Popen(
            command(root, "--scheduler", address, "--store", store),
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert happens(lambda: len(list(store.glob("*/[0-9a-f]*.result"))) >= 2)
        running.close()
        _, said = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == ClusterError.exit_code, said
    assert "finished runs are kept" in said


def test_without_dask_it_is_said_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(UsageError, match=r"pip install 'tensorboard-plugin-stall\[cluster\]'"),
        parallel.on_cluster("tcp://127.0.0.1:1"),
    ):
        pass


def test_workers_that_die_in_every_task_cost_these_runs_alone() -> None:
    class KilledWorker(Exception):
        """Named as in Dask."""

    def do(work: object, run: Run) -> RunResult:
        if run.name == "bad":
            raise KilledWorker
        return run_result.analyze(run)

    with ThreadPoolExecutor(1) as executor:
        runs = [fake_run(name) for name in ("good", "bad", "other")]
        found = dict(parallel._results(executor, do, runs, run_result.analyze))
    said = {run.name: json.loads(result.entry)["notes"][0]["text"] for run, result in found.items()}
    assert "that tried to analyze it has died" in said["bad"]
    assert not any("workers" in said[name] for name in ("good", "other"))
    assert not any(result.head.final for result in found.values())
