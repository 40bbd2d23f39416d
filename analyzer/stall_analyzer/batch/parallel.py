"""Work on many runs at once: in several processes, or on a Dask cluster.

Both are executors in the sense of concurrent.futures, and do the same work. On a cluster, too, a
run is analyzed in a separate process, not in Dask's worker: a crash takes nothing else with it, and
a run that hangs can be ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.thread import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import LifoQueue, SimpleQueue
from typing import Any, TypeAlias

from stall_analyzer.batch.engines import Engine, Watch, failed, unwatched
from stall_analyzer.errors import ClusterError, StallError, UsageError
from stall_analyzer.files.caches import code_version
from stall_analyzer.model.runs import Run
from stall_analyzer.results.forked_process import can_be_copied
from stall_analyzer.results.memory_limit import memory_limit
from stall_analyzer.results.run_result import RunResult
from stall_analyzer.results.worker_process import (
    FOREVER_S,
    NoResult,
    ProcessDied,
    Work,
    WorkerProcess,
)

# Enough to keep a large cluster busy; waiting runs are small.
IN_FLIGHT = 1000
CONNECT_WITHIN_S = 30
WORKERS_WITHIN_S = 300  # batch systems may be slow to start them

Do: TypeAlias = Callable[[Work[RunResult], Run], RunResult]


@contextmanager
def in_processes(
    count: int, deadline_s: float = FOREVER_S, watch: Watch = unwatched
) -> Iterator[Engine]:
    """`count` processes, each with a thread that waits for it. They are copies of this one if that
    is possible, so that the analysis is imported only once.
    """
    most_bytes = memory_limit(count)
    workers = [WorkerProcess(most_bytes) for _ in range(count)]
    if can_be_copied():
        for worker in workers:
            worker.fork()
    idle: LifoQueue[WorkerProcess] = LifoQueue()
    for worker in workers:
        idle.put(worker)

    def do(work: Work[RunResult], run: Run) -> RunResult:
        worker = idle.get()
        try:
            return worker.do(work, run, lambda share, _: watch(run, share), deadline_s=deadline_s)
        finally:
            idle.put(worker)

    executor = ThreadPoolExecutor(count, thread_name_prefix="stall")
    try:
        yield partial(_results, executor, do)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.close()


@contextmanager
def on_cluster(address: str, deadline_s: float = FOREVER_S) -> Iterator[Engine]:
    """The workers of a Dask scheduler. They must see the logs under the same paths."""
    try:
        from distributed import Client  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(
            "--scheduler needs Dask: pip install 'tensorboard-plugin-stall[cluster]'"
        ) from error
    try:
        client = Client(
            address, timeout=CONNECT_WITHIN_S, name="stall-analyze", set_as_default=False
        )
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise ClusterError(f"no Dask scheduler answers at {address}: {error}") from error
    try:
        _check_workers(client, address)
        executor = client.get_executor(pure=False)
        yield partial(_results, executor, partial(_on_a_worker, deadline_s=deadline_s))
    finally:
        client.close()


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_WITHIN_S)
    except OSError as error:
        raise ClusterError(f"the scheduler at {address} has no workers") from error
    try:
        versions = set(client.run(code_version).values())
    except Exception as error:  # whatever another machine raises
        raise ClusterError(
            "the workers cannot load stall_analyzer; install tensorboard-plugin-stall there "
            f"({type(error).__name__}: {error})"
        ) from error
    if versions != {code_version()}:
        others = ", ".join(sorted(versions - {code_version()}))
        raise ClusterError(
            f"the workers have a different version of stall-analyze: {others} there, "
            f"{code_version()} here"
        )


_on_this_thread = threading.local()


def _on_a_worker(work: Work[RunResult], run: Run, deadline_s: float) -> RunResult:
    """In a thread of a Dask worker, which has a process of its own."""
    if not hasattr(_on_this_thread, "worker"):
        _on_this_thread.worker = WorkerProcess()
    worker: WorkerProcess = _on_this_thread.worker
    return worker.do(work, run, deadline_s=deadline_s)


def _results(
    executor: Executor, do: Do, runs: Iterable[Run], work: Work[RunResult]
) -> Iterator[tuple[Run, RunResult]]:
    """A run whose process was killed is tried once more, alone, when all others are done: its
    neighbors may have used up the memory."""
    again: list[Run] = []

    def submit(run: Run) -> Future[RunResult]:
        return executor.submit(do, work, run)

    for run, future in _done(submit, runs, IN_FLIGHT):
        if not future.cancelled() and isinstance(future.exception(), ProcessDied):
            again.append(run)
        else:
            yield run, _result(run, future)
    for run, future in _done(submit, again, 1):
        yield run, _result(run, future)


def _done(
    submit: Callable[[Run], Future[RunResult]], runs: Iterable[Run], most: int
) -> Iterator[tuple[Run, Future[RunResult]]]:
    """In the order in which they finish. (`wait` would look at all pending ones each time.)"""
    waiting: dict[Future[RunResult], Run] = {}
    ended: SimpleQueue[Future[RunResult]] = SimpleQueue()

    def first() -> tuple[Run, Future[RunResult]]:
        future = ended.get()
        return waiting.pop(future), future

    for run in runs:
        future = submit(run)
        waiting[future] = run
        future.add_done_callback(ended.put)
        if len(waiting) >= most:
            yield first()
    while waiting:
        yield first()


def _result(run: Run, future: Future[RunResult]) -> RunResult:
    try:
        return future.result()
    except StallError:
        raise
    except CancelledError as error:
        raise ClusterError(
            "the cluster was lost; the results of finished runs are kept: run the command again "
            "to continue"
        ) from error
    except NoResult as error:
        return failed(run, str(error))
    except Exception as error:  # a lost worker, or a bug of ours
        if type(error).__name__ == "KilledWorker":  # Dask's, which may not be installed
            return failed(
                run,
                "every worker of the cluster that tried to analyze it has died, perhaps because "
                "memory ran out; the next pass will try this run again",
            )
        return failed(run, f"{type(error).__name__}: {error}")
