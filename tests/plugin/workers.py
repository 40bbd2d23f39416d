"""Workers that need no process, and patience with those that are one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.discover.discover import discover
from stall_analyzer.model.runs import Run
from stall_analyzer.outcome import analyze_one
from tb_stall_plugin import cache
from tb_stall_plugin.analyses import Analyses, Status
from tb_stall_plugin.work import Worker, WorkFailed
from tests.plugin.boards import PATIENCE_S


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


def happens(what: Callable[[], object]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False
