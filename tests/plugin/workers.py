"""Workers without a process, and ways to wait for those that have one."""

from __future__ import annotations

import threading
from pathlib import Path

from stall_analyzer.discover.discover import discover
from stall_analyzer.model.runs import Run
from stall_analyzer.progress import Progress, ignore_progress
from stall_analyzer.results.worker_process import FOREVER_S, Answer, Work, WorkerProcess, WorkFailed
from tb_stall_plugin.analyses import Analyses, Status
from tests.patience import PATIENCE_S, happens


class Counting(WorkerProcess):
    """Analyzes in this process, when allowed to, and counts."""

    error = ""

    def __init__(self) -> None:
        super().__init__()
        self.started = self.closed = 0
        self.runs: list[str] = []
        self.patience_s: list[float] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def start(self) -> None:
        self.started += 1

    def close(self) -> None:
        self.closed += 1

    def do(
        self,
        work: Work[Answer],
        run: Run,
        progress: Progress = ignore_progress,
        *,
        deadline_s: float = FOREVER_S,
        patience_s: float = FOREVER_S,
    ) -> Answer:
        self.runs.append(run.name)
        self.patience_s.append(patience_s)
        progress(0.5, "half way")
        assert self.may_go_on.wait(PATIENCE_S)
        if self.error:
            raise WorkFailed(self.error)
        return work(run, ignore_progress)


class Failing(Counting):
    error = "it is cursed"


def only_run(folder: Path) -> Run:
    (found,) = discover([str(folder)]).runs
    return found


def settled(analyses: Analyses, run: Run, *, urgent: bool = False) -> Status:
    assert happens(lambda: analyses.status(run, urgent=urgent).progress is None)
    return analyses.status(run, urgent=urgent)
