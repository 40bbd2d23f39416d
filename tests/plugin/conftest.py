from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stall_analyzer.model.runs import Run
from tb_stall_plugin import logs
from tests.plugin.boards import SAMPLES, Board, copy_of
from tests.plugin.workers import only_run


@pytest.fixture(autouse=True)
def no_memory_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests change folders more often than people do."""
    monkeypatch.setattr(logs, "REMEMBERED_S", 0.0)
    monkeypatch.setattr(logs, "REMEMBERED_LOOKS", 0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """The sample logs, all analyzed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("STALL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        board = Board(str(SAMPLES), profile=True)
        for run in board.runs():
            board.report(run)
        yield board


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return only_run(copy_of("event_files_only", tmp_path / "logs"))
