"""Where the work is done: in this process, in several of them, or on a Dask cluster.

All three are executors in the sense of concurrent.futures, and all do the same work. On a cluster,
too, a run is analysed in a process apart from Dask's worker: one that crashes then takes nothing
else with it, and one that hangs can be ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from stall_analyzer.errors import ClusterError, StallError, UsageError
from stall_analyzer.files.caches import code_version
from stall_analyzer.model.runs import Run
from stall_analyzer.results.run_result import RunResult, result_of
from stall_analyzer.results.worker_process import (
    FOREVER_S,
    NoResult,
    ProcessDied,
    Work,
    WorkerProcess,
)

# Enough to keep a large cluster busy; what waits is small.
IN_FLIGHT = 1000
CONNECT_WITHIN_S = 30
WORKERS_WITHIN_S = 300  # batch systems take their time to start them

# A run, and which share of its analysis is done.
Watch: TypeAlias = Callable[[Run, float], None]


@dataclass(frozen=True)
class Engine:
    """An executor, and what to submit to it."""

    executor: Executor
    do: Callable[[Work[RunResult], Run], RunResult]


def unwatched(run: Run, share: float) -> None: ...


# ---------------------------------------------------------------- the three


@contextmanager
def in_this_process(watch: Watch = unwatched) -> Iterator[Engine]:
    """One run after the other, at once: for a few small ones."""
    yield Engine(_AtOnce(), lambda work, run: work(run, lambda share, _: watch(run, share)))


@contextmanager
def in_processes(
    count: int, deadline_s: float = FOREVER_S, watch: Watch = unwatched
) -> Iterator[Engine]:
    """`count` threads, each with a process of its own."""
    mine = threading.local()
    workers: set[WorkerProcess] = set()

    def do(work: Work[RunResult], run: Run) -> RunResult:
        worker = _worker_of(mine)
        workers.add(worker)
        return worker.do(work, run, lambda share, _: watch(run, share), deadline_s=deadline_s)

    executor = ThreadPoolExecutor(count, thread_name_prefix="stall")
    try:
        yield Engine(executor, do)
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
        yield Engine(executor, partial(_on_a_worker, deadline_s=deadline_s))
    finally:
        client.close()


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_WITHIN_S)
    except OSError as error:
        raise ClusterError(f"the scheduler at {address} has no workers") from error
    try:
        versions = set(client.run(code_version).values())
    except Exception as error:  # whatever a foreign machine raises
        raise ClusterError(
            "the workers cannot load stall_analyzer; install tensorboard-plugin-stall there "
            f"({type(error).__name__}: {error})"
        ) from error
    if versions != {code_version()}:
        others = ", ".join(sorted(versions - {code_version()}))
        raise ClusterError(
            f"the workers have another version of stall-analyze: {others} there, "
            f"{code_version()} here"
        )


_on_this_thread = threading.local()


def _on_a_worker(work: Work[RunResult], run: Run, deadline_s: float) -> RunResult:
    """In a thread of a Dask worker."""
    return _worker_of(_on_this_thread).do(work, run, deadline_s=deadline_s)


def _worker_of(thread: threading.local) -> WorkerProcess:
    """The process of a thread, started when it is first asked for."""
    if not hasattr(thread, "worker"):
        thread.worker = WorkerProcess()
    worker: WorkerProcess = thread.worker
    return worker


class _AtOnce(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # told where the result is asked for
            future.set_exception(error)
        return future


# ---------------------------------------------------------------- the work


def results(
    engine: Engine, runs: Iterable[Run], work: Work[RunResult]
) -> Iterator[tuple[Run, RunResult]]:
    """Each run with its result, as they come; of a run that could not be analysed, the failure.

    A run whose process was killed is tried once more, alone, when all others are done: memory may
    have run out because of its neighbours.
    """
    again: list[Run] = []
    for run, future in _done(engine, runs, work, IN_FLIGHT):
        if not future.cancelled() and isinstance(future.exception(), ProcessDied):
            again.append(run)
        else:
            yield run, _result(run, future)
    for run, future in _done(engine, again, work, 1):
        yield run, _result(run, future)


def _done(
    engine: Engine, runs: Iterable[Run], work: Work[RunResult], most: int
) -> Iterator[tuple[Run, Future[RunResult]]]:
    waiting: dict[Future[RunResult], Run] = {}
    for run in runs:
        waiting[engine.executor.submit(engine.do, work, run)] = run
        if len(waiting) >= most:
            yield from _first_done(waiting)
    while waiting:
        yield from _first_done(waiting)


def _first_done(waiting: dict[Future[RunResult], Run]) -> list[tuple[Run, Future[RunResult]]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    return [(waiting.pop(future), future) for future in done]


def _result(run: Run, future: Future[RunResult]) -> RunResult:
    try:
        return future.result()
    except StallError:
        raise
    except CancelledError as error:
        raise ClusterError(
            "the cluster was lost; what is done is kept: start again to go on"
        ) from error
    except NoResult as error:
        reason = str(error)
    except Exception as error:  # a lost worker, or a fault of ours
        reason = f"{type(error).__name__}: {error}"
    from stall_analyzer.outcome import failure  # noqa: PLC0415  all of an analysis comes with it

    return result_of(run, failure(run, reason))
