"""Analyzes runs outside of the request thread. Each version of a run's files is analyzed once: the
run that somebody is looking at first, then the cheapest."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stall_analyzer.chart.chart_columns import Chart
from stall_analyzer.files.caches import is_live, results_folder, version_of
from stall_analyzer.model.runs import Run
from stall_analyzer.progress import Progress
from stall_analyzer.report.page import FAILED, READY, RUNNING, UNREAD, WAITING
from stall_analyzer.report.verdict_change import VerdictChange, verdict_change
from stall_analyzer.results.result_store import ResultStore
from stall_analyzer.results.run_result import ResultHead, RunResult, analyze, result_of
from stall_analyzer.results.worker_process import NoResult, WorkerProcess

if TYPE_CHECKING:
    from stall_analyzer.model.findings import Report
    from stall_analyzer.report.document_types import ReportEntry

AT_THE_START = {"share": 0.0, "text": "waiting for its turn"}
IDLE_S = 60.0  # how long a worker without work waits for more: starting one takes half a second
# How long a worker may stay silent before it is given up. It reports progress while it reads, so
# silence means that a disk or a network hangs, or that we have a bug. The work after the reading is
# silent and takes longer for larger runs, but it takes seconds, and this allows many minutes.
PATIENCE_S = 300.0
PATIENCE_S_PER_BYTE = 1e-6
# A run in progress changes every second. Before it is read again, we rest this many times as long
# as the last reading took: a page that is left open must not take the CPU from the training.
REST = 10.0
CHANGES_KEPT = 5


# After a failure that may have passed, such as an unreadable disk, a run that is asked for again is
# analyzed again: at first after this long, and after each further failure twice as long.
PASSES_WITHIN_S = 30.0
PASSES_AT_MOST_S = 3600.0
# How many bytes of charts are kept in memory. The others are read again when they are asked for.
MOST_CHART_BYTES = 1 << 30


class ReadCharts:
    """Keeps the charts in memory that were looked at last."""

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], dict[str, Chart]] = OrderedDict()

    def has(self, key: str, version: str) -> bool:
        return (key, version) in self._kept or self._store.has_charts(key, version)

    def of(self, key: str, version: str) -> dict[str, Chart] | None:
        """The charts by host; None if there are none."""
        with self._lock:
            found = self._kept.pop((key, version), None)
            if found is None:
                stored = self._store.charts(key, version)
                if stored is None:
                    return None
                found = {chart.host: chart for chart in stored}
            self._kept[key, version] = found
            while len(self._kept) > 1 and sum(map(_bytes, self._kept.values())) > MOST_CHART_BYTES:
                self._kept.popitem(last=False)
            return found


def _bytes(charts: Mapping[str, Chart]) -> int:
    return sum(lane.start_ps.nbytes * 3 for chart in charts.values() for lane in chart.lanes)


class StoredAnalysis:
    """A result in the store. Each part is read when it is asked for. If the worker could not store
    the result, `made` holds it."""

    def __init__(
        self,
        store: ResultStore,
        charts: ReadCharts,
        key: str,
        head: ResultHead,
        made: RunResult | None = None,
    ) -> None:
        self._store, self._read_charts, self._key, self.head = store, charts, key, head
        self._made = made

    @property
    def exists(self) -> bool:
        return self._made is not None or self._store.has(self._key)

    @property
    def version(self) -> str:
        """Identifies what the page shows: it changes when the charts are added later."""
        return self.head.version if self.has_charts() else f"{self.head.version} without charts"

    def report(self) -> ReportEntry:
        """Raises UnreadableFile if the store has lost it."""
        entry = self._made.entry if self._made else self._store.entry(self._key)
        return cast("ReportEntry", json.loads(entry))

    def has_charts(self) -> bool:
        """There are none if only `stall-analyze` has read the run and nobody has opened it here.
        Does not read them: a report need not wait for that."""
        return self._made is not None or self._read_charts.has(self._key, self.head.version)

    @property
    def _charts(self) -> dict[str, Chart] | None:
        if self._made is not None:
            return {chart.host: chart for chart in self._made.extra}
        return self._read_charts.of(self._key, self.head.version)

    def chart(self, host: str | None) -> Chart | None:
        """The chart of `host`, or of the host that trains; None if that host is not in the run, or
        if the charts are damaged, after which there are none."""
        charts = self._charts or {}
        return next(iter(charts.values()), None) if host is None else charts.get(host)


@dataclass(frozen=True)
class Status:
    """How far the analysis of a run is. While a new one is being made, `analysis` may be of an
    earlier version, or lack charts."""

    state: str
    progress: dict[str, Any] | None = None
    error: str | None = None
    analysis: StoredAnalysis | None = None
    changes: tuple[VerdictChange, ...] = ()  # how the verdict changed, latest first


@dataclass
class _Job:
    run: Run
    version: str
    state: str = UNREAD
    progress: dict[str, Any] | None = None
    error: str | None = None
    analysis: StoredAnalysis | None = None
    urgent: bool = False
    changes: tuple[VerdictChange, ...] = ()
    began_s: float = 0.0
    rests_until_s: float = 0.0
    tried: int = 0  # how often it was analyzed again without a final result
    ended_s: float = 0.0
    is_first: bool = False  # there was nothing to show before

    def __post_init__(self) -> None:
        self.is_first = self.analysis is None

    @property
    def waits_for_report(self) -> bool:
        """Whether the worker may have stored the report, but not the charts, since it began."""
        is_earlier = self.analysis is None or self.analysis.head.version != self.version
        return self.state == RUNNING and is_earlier

    @property
    def may_have_passed(self) -> bool:
        """Whether the obstacle to a final result, such as an unreadable disk, may be gone now."""
        if self.state not in {READY, FAILED} or (self.analysis and self.analysis.head.final):
            return False
        wait_s = min(PASSES_WITHIN_S * 2.0 ** min(self.tried, 20), PASSES_AT_MOST_S)
        return time.monotonic() - self.ended_s > wait_s

    @property
    def is_lost(self) -> bool:
        """Whether somebody emptied the cache folder."""
        return self.state == READY and self.analysis is not None and not self.analysis.exists

    @property
    def lacks_charts(self) -> bool:
        """Whether it has no charts yet, but may get some."""
        if self.state != READY or self.analysis is None or self.error:
            return False
        return not self.analysis.has_charts()

    def show(self, analysis: StoredAnalysis | None) -> None:
        self.changes = _changes(self.changes, self.analysis, analysis)
        self.analysis = analysis

    def end(self, analysis: StoredAnalysis | None, error: str) -> None:
        """A report without charts is better than none; a report of an earlier version is not."""
        if analysis is None and self.analysis and self.analysis.head.version == self.version:
            analysis = self.analysis
        self.show(analysis)
        self.error = error or None
        self.state = READY if analysis else FAILED
        self.ended_s = time.monotonic()
        if not self.is_first and is_live(self.run):  # the first change is shown at once
            self.rests_until_s = self.ended_s + REST * (self.ended_s - self.began_s)

    def status(self) -> Status:
        if self.state in {READY, FAILED}:
            return Status(self.state, None, self.error, self.analysis, self.changes)
        progress = None if self.state == UNREAD else self.progress or AT_THE_START
        if self.analysis is not None and self.analysis.exists:
            return Status(READY, progress, None, self.analysis, self.changes)
        return Status(self.state, progress)


class Analyses:
    def __init__(self, worker: Callable[[], WorkerProcess] = WorkerProcess) -> None:
        self._new_worker = worker
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._jobs: dict[str, _Job] = {}  # the newest of each run

    @cached_property
    def _store(self) -> ResultStore:
        return ResultStore(results_folder())

    @cached_property
    def _charts(self) -> ReadCharts:
        return ReadCharts(self._store)

    def warm_up(self) -> None:
        """Starts the worker, because somebody is about to ask for an analysis."""
        with self._changed:
            self._wake()

    def status(
        self, run: Run, *, start: bool = True, urgent: bool = False, again: bool = False
    ) -> Status:
        """Never waits. Unless `start` is false, starts the analysis if there is none of the files
        as they are now; with `again`, also if it failed. An `urgent` run gets charts."""
        version, key = version_of(run), self._store.key(run)
        with self._changed:
            job = self._jobs.get(key)
            if job is None or self._is_outdated(job, version) or (again and job.error):
                job = self._jobs[key] = self._new_job(run, version, job)
            elif job.version == version and job.may_have_passed:
                tried = job.tried + 1
                job = self._jobs[key] = self._new_job(run, version, job)
                job.tried = tried
            elif job.waits_for_report and (head := self._store.known(run, even_live=True)):
                job.show(self._analysis(run, head))
            job.urgent |= urgent
            if (start and job.state == UNREAD) or (urgent and job.lacks_charts):
                job.state = WAITING
                self._wake()
            return job.status()

    def outlived(self, run: Run) -> None:
        """Has a run judged once more: its files are as they were, but its process has ended."""
        key = self._store.key(run)
        with self._changed:
            job = self._jobs.get(key)
            if job is not None and job.state == READY:
                self._jobs[key] = _Job(run, job.version, analysis=job.analysis, changes=job.changes)

    def _is_outdated(self, job: _Job, version: str) -> bool:
        if job.is_lost:
            return True
        return job.version != version and time.monotonic() >= job.rests_until_s

    def _new_job(self, run: Run, version: str, former: _Job | None) -> _Job:
        before = former.analysis if former else None
        changes = former.changes if former else ()
        head = self._store.known(run, even_live=True)
        if head is not None:
            found = self._analysis(run, head)
            changes = _changes(changes, before, found)
            return _Job(run, version, READY, analysis=found, changes=changes)
        return _Job(run, version, analysis=before, changes=changes)

    def _analysis(
        self, run: Run, head: ResultHead, made: RunResult | None = None
    ) -> StoredAnalysis:
        return StoredAnalysis(self._store, self._charts, self._store.key(run), head, made)

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stall", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        """Works until there has been nothing to do for a while. The next request starts another
        thread."""
        worker = self._new_worker()
        with suppress(NoResult):  # the first job will report the failure
            worker.start()
        while (job := self._next()) is not None:
            self._finish(job, worker)
        worker.close()
        with suppress(OSError):
            self._store.prune()

    def _next(self) -> _Job | None:
        with self._changed:
            self._changed.wait_for(self._waiting, timeout=IDLE_S)
            waiting = self._waiting()
            if not waiting:
                self._thread = None
                return None
            job = min(waiting, key=lambda job: (not job.urgent, job.run.size))
            job.state, job.began_s = RUNNING, time.monotonic()
            return job

    def _waiting(self) -> list[_Job]:
        return [job for job in self._jobs.values() if job.state == WAITING]

    def _finish(self, job: _Job, worker: WorkerProcess) -> None:
        def progress(share: float, text: str) -> None:
            job.progress = {"share": share, "text": text}

        analysis, error = None, ""
        work = partial(analyze_with_charts, folder=self._store.folder)
        patience_s = PATIENCE_S + PATIENCE_S_PER_BYTE * job.run.size
        try:
            head, made = worker.do(work, job.run, progress, patience_s=patience_s)
            if head.traceback:
                error = head.facts["errors"][0]
            else:
                self._store.made_anew(job.run)
                analysis = self._analysis(job.run, head, made)
        except Exception as lost:  # this thread must go on: other runs wait for it
            reason = str(lost) if isinstance(lost, NoResult) else f"{type(lost).__name__}: {lost}"
            error = f"This run could not be analyzed: {reason}."
        with self._changed:
            job.end(analysis, error)


def _changes(
    changes: tuple[VerdictChange, ...], before: StoredAnalysis | None, after: StoredAnalysis | None
) -> tuple[VerdictChange, ...]:
    known = [analysis.head.facts for analysis in (before, after) if analysis is not None]
    change = verdict_change(known[0], known[1], time.time()) if len(known) == 2 else None
    return changes if change is None else (change, *changes[: CHANGES_KEPT - 1])


def analyze_with_charts(
    run: Run, progress: Progress, folder: Path
) -> tuple[ResultHead, RunResult | None]:
    """Runs in the worker's process. The report is stored first, so that nobody waits for the charts
    to read it. A result that came with a traceback, which means a bug of ours, is not stored. A
    result that could not be stored is returned."""
    from stall_analyzer.chart.lanes import charts_of  # noqa: PLC0415  TensorBoard never needs these
    from stall_analyzer.outcome import outcome_of  # noqa: PLC0415

    store = ResultStore(folder)

    def charts_after_report(report: Report) -> tuple[Chart, ...]:
        store.put(run, result_of(run, outcome_of(report)))
        progress(0.95, "preparing the timeline")
        return charts_of(report)

    result = analyze(run, progress, charts_after_report, folder)
    if result.head.traceback:
        print(result.head.traceback, file=sys.stderr)
    else:
        progress(0.97, "storing the result")
        store.put(run, result, result.extra)
        if store.problem:
            print(f"stall: {store.problem}; the result is kept in memory", file=sys.stderr)
            return result.head, result
    return result.head, None
