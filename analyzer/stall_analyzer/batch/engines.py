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

from stall_analyzer.batch import run_result
from stall_analyzer.batch.run_result import Job, Result, Work, pack
from stall_analyzer.batch.worker_process import Apart, Killed, Lost
from stall_analyzer.errors import ClusterError, StallError, UsageError
from stall_analyzer.files.caches import code_version
from stall_analyzer.model.runs import Run

# Enough to keep a large cluster busy; what waits is small.
IN_FLIGHT = 1000
CONNECT_WITHIN_S = 30
WORKERS_WITHIN_S = 300  # batch systems take their time to start them

# A run, and which share of its analysis is done.
Watch: TypeAlias = Callable[[Run, float], None]


@dataclass(frozen=True)
class Engine:
    executor: Executor
    do: Callable[[Job], Result]


def unwatched(run: Run, share: float) -> None: ...


# ---------------------------------------------------------------- the three


@contextmanager
def in_this_process(watch: Watch = unwatched) -> Iterator[Engine]:
    """One run after the other, at once: for a few small ones."""
    yield Engine(
        _AtOnce(), lambda job: run_result.analyze(job, lambda share, _: watch(job.run, share))
    )


@contextmanager
def in_processes(
    count: int,
    deadline_s: float | None,
    watch: Watch = unwatched,
    do: Work = run_result.analyze,
) -> Iterator[Engine]:
    """`count` threads, each with a process of its own."""
    mine = threading.local()
    all_of_them: list[Apart] = []

    def analyze(job: Job) -> Result:
        if not hasattr(mine, "apart"):
            mine.apart = Apart()
            all_of_them.append(mine.apart)
        result: Result = mine.apart.analyze(
            job, deadline_s, lambda share, _: watch(job.run, share), do
        )
        return result

    executor = ThreadPoolExecutor(count, thread_name_prefix="stall")
    try:
        yield Engine(executor, analyze)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for apart in all_of_them:
            apart.close()


@contextmanager
def on_cluster(address: str, deadline_s: float | None) -> Iterator[Engine]:
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


_on_this_worker = threading.local()


def _on_a_worker(job: Job, deadline_s: float | None) -> Result:
    """In a thread of a Dask worker."""
    if not hasattr(_on_this_worker, "apart"):
        _on_this_worker.apart = Apart()
    result: Result = _on_this_worker.apart.analyze(job, deadline_s)
    return result


class _AtOnce(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # told where the result is asked for
            future.set_exception(error)
        return future


# ---------------------------------------------------------------- the work


def results(engine: Engine, jobs: Iterable[Job]) -> Iterator[tuple[Run, Result]]:
    """Each run with its result, as they come; of a run that could not be analysed, the failure.

    A run whose process was killed is tried once more, alone, when all others are done: memory may
    have run out because of its neighbours.
    """
    again: list[Job] = []
    for job, future in _done(engine, jobs, IN_FLIGHT):
        if not future.cancelled() and isinstance(future.exception(), Killed):
            again.append(job)
        else:
            yield job.run, _result(job.run, future)
    for job, future in _done(engine, again, 1):
        yield job.run, _result(job.run, future)


def _done(engine: Engine, jobs: Iterable[Job], most: int) -> Iterator[tuple[Job, Future[Result]]]:
    waiting: dict[Future[Result], Job] = {}
    for job in jobs:
        waiting[engine.executor.submit(engine.do, job)] = job
        if len(waiting) >= most:
            yield from _first_done(waiting)
    while waiting:
        yield from _first_done(waiting)


def _first_done(waiting: dict[Future[Result], Job]) -> list[tuple[Job, Future[Result]]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    return [(waiting.pop(future), future) for future in done]


def _result(run: Run, future: Future[Result]) -> Result:
    try:
        return future.result()
    except StallError:
        raise
    except CancelledError as error:
        raise ClusterError(
            "the cluster was lost; what is done is kept: start again to go on"
        ) from error
    except Lost as error:
        reason = str(error)
    except Exception as error:  # a lost worker, or a fault of ours
        reason = f"{type(error).__name__}: {error}"
    from stall_analyzer.outcome import failure  # noqa: PLC0415  all of an analysis comes with it

    return Result(pack(run, failure(run, reason)))
