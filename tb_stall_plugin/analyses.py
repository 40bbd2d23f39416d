"""Analyses off the request thread: each version of a run's files once, cheapest first, and the run
that somebody looks at before all others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stall_analyzer.model.runs import Run
from stall_analyzer.report.page import FAILED, READY, RUNNING, UNREAD, WAITING
from tb_stall_plugin.cache import Analysis, Cache, version_of
from tb_stall_plugin.work import Worker, WorkFailed

AT_THE_START = {"share": 0.0, "text": "waiting for its turn"}
IDLE_S = 60.0  # how long a worker without work waits for more: starting one takes half a second


@dataclass(frozen=True)
class Status:
    """How far a run is. `analysis` may be of an earlier version while a new one is made."""

    state: str
    progress: dict[str, Any] | None = None
    error: str | None = None
    analysis: Analysis | None = None


@dataclass
class _Job:
    run: Run
    version: str
    state: str = UNREAD
    progress: dict[str, Any] | None = None
    error: str | None = None
    analysis: Analysis | None = None
    urgent: bool = False


class Analyses:
    def __init__(self, cache: Cache, worker: Callable[[], Worker] = Worker) -> None:
        self._cache = cache
        self._new_worker = worker
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._jobs: dict[tuple[str, str, int], _Job] = {}  # of each run the newest
        self._former: dict[tuple[str, str, int], Analysis] = {}

    def warm_up(self) -> None:
        """Somebody is about to ask: the worker may start already."""
        with self._changed:
            self._wake()

    def status(
        self, run: Run, *, start: bool = True, urgent: bool = False, again: bool = False
    ) -> Status:
        """Never waits. Starts the analysis, unless told not to, where there is none of the files as
        they are now; `again` also where it failed."""
        version, key = version_of(run), (run.path, run.name, run.attempt)
        with self._changed:
            job = self._jobs.get(key)
            if (
                job is None
                or job.version != version
                or _lost(job)
                or (again and job.state == FAILED)
            ):
                job = self._jobs[key] = self._new_job(run, version)
            job.urgent |= urgent
            if start and job.state == UNREAD:
                job.state = WAITING
                self._wake()
            return self._status(job, self._former.get(key))

    def _new_job(self, run: Run, version: str) -> _Job:
        stored = self._cache.load(version)
        job = _Job(run, version)
        if stored is not None:
            job.state, job.analysis = READY, stored
            self._former[run.path, run.name, run.attempt] = stored
        return job

    def _status(self, job: _Job, former: Analysis | None) -> Status:
        if job.state in {READY, FAILED}:
            return Status(job.state, None, job.error, job.analysis)
        progress = None if job.state == UNREAD else job.progress or AT_THE_START
        if former is not None and former.exists:
            return Status(READY, progress, None, former)
        return Status(job.state, progress)

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stall", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        """Until there was nothing to do for a while. The next question starts another thread."""
        worker = self._new_worker()
        with suppress(WorkFailed):  # the first job will tell
            worker.start()
        while (job := self._next()) is not None:
            self._finish(job, worker)
        worker.close()
        with suppress(OSError):
            self._cache.prune()

    def _next(self) -> _Job | None:
        with self._changed:
            self._changed.wait_for(self._waiting, timeout=IDLE_S)
            waiting = self._waiting()
            if not waiting:
                self._thread = None
                return None
            job = min(waiting, key=lambda job: (not job.urgent, job.run.size))
            job.state = RUNNING
            return job

    def _waiting(self) -> list[_Job]:
        return [job for job in self._jobs.values() if job.state == WAITING]

    def _finish(self, job: _Job, worker: Worker) -> None:
        def progress(share: float, text: str) -> None:
            job.progress = {"share": share, "text": text}

        analysis, error = None, "The result of the analysis was not stored."
        try:
            worker.analyze(job.run, self._cache.place(job.version), progress)
            analysis = self._cache.load(job.version)
        except WorkFailed as failure:
            error = str(failure)
        except Exception as unforeseen:  # this thread must live: other runs wait for it
            error = f"{type(unforeseen).__name__}: {unforeseen}"
        with self._changed:
            job.analysis = analysis
            job.state = READY if analysis else FAILED
            job.error = None if analysis else error
            if analysis is not None:
                self._former[job.run.path, job.run.name, job.run.attempt] = analysis


def _lost(job: _Job) -> bool:
    """Somebody emptied the cache folder."""
    return job.analysis is not None and not job.analysis.exists
