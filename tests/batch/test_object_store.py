"""An object store as ROOT: the same results as from disk, each object fetched once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stall_analyzer.files import caches
from tests.batch.fleets import analyzed, command, lay_out, lines_of, run_command
from tests.batch.object_store import BUCKET, Proxy, object_store

pytest.importorskip("s3fs", reason="s3fs comes with the extra [s3]")
pytest.importorskip("moto", reason="moto is needed to have an object store here")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    lay_out(root, ["exp 1/a", "exp 1/b"], sample="compile_tracing")
    lay_out(root, ["c"], sample="event_files_only")
    (root / "c" / "checkpoint").write_bytes(bytes(1000))
    return root


@pytest.fixture(scope="module")
def store(logs: Path) -> Iterator[tuple[Proxy, dict[str, str]]]:
    with object_store(logs) as made:
        yield made


def read_from_store(
    environment: dict[str, str], *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("cut_every", [0, 3])
def test_results_are_those_of_the_disk_and_each_object_is_fetched_once(
    logs: Path, store: tuple[Proxy, dict[str, str]], tmp_path: Path, cut_every: int
) -> None:
    proxy, environment = store
    proxy.cut_every, proxy.cut = cut_every, 0
    proxy.fetched.clear()
    proxy.gets.clear()
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    run_command(logs, "--store", tmp_path / "here", "--jsonl", here)
    url = f"s3://{BUCKET}"
    finished = read_from_store(
        environment, url, "--store", tmp_path / "there", "--jsonl", there, "--jobs", "2"
    )
    assert finished.returncode == 0, finished.stderr
    assert lines_of(there) == lines_of(here)
    wanted = {
        f"/{BUCKET}/{path.relative_to(logs)}": path.stat().st_size
        for pattern in ("*.xplane.pb", "*tfevents*")
        for path in logs.rglob(pattern)
    }
    assert dict(proxy.fetched) == wanted
    assert set(proxy.gets.values()) == {1}
    assert bool(proxy.cut) is bool(cut_every)


def test_an_unchanged_object_is_not_fetched_again(
    store: tuple[Proxy, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, environment = store
    proxy.cut_every = 0
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        caches, "LIVE_S", -1.0
    )  # objects put there a moment ago could be a live run
    first, _ = analyzed(f"s3://{BUCKET}/exp 1", tmp_path / "store")
    proxy.gets.clear()
    second, heard = analyzed(f"s3://{BUCKET}/exp 1", tmp_path / "store")
    assert (first.to_read, second.to_read, len(heard)) == (2, 0, 2)
    assert not proxy.gets
    assert list(second.lines()) == list(first.lines())


def test_a_bucket_that_is_not_there_is_said_in_words(store: tuple[Proxy, dict[str, str]]) -> None:
    finished = read_from_store(store[1], "s3://nowhere/logs")
    assert finished.returncode == 3
    assert "s3://nowhere/logs could not be read: it does not exist" in finished.stderr
