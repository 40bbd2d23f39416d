"""Many runs in several processes. A process that is killed takes only its own run with it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from stall_analyzer import outcome
from stall_analyzer.model import Run
from stall_analyzer.outcome import Also, Outcome, failure


def analyze_all(
    runs: Sequence[Run], processes: int, finished: Callable[[], None], also: Also | None = None
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `finished` is called after each."""
    with _workers(processes) as pool:
        futures = {pool.submit(outcome.analyze_one, run, also): run for run in runs}
        try:
            for future in as_completed(futures):
                if not isinstance(future.exception(), BrokenProcessPool):
                    finished()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [_result(future, run, finished, also) for future, run in futures.items()]


def _result(
    future: Future[Outcome], run: Run, finished: Callable[[], None], also: Also | None
) -> Outcome:
    """A killed worker takes the whole pool with it: its victims get a process of their own."""
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, BrokenProcessPool):
        return failure(run, f"{type(error).__name__}: {error}")
    with _workers(1) as pool:
        alone = pool.submit(outcome.analyze_one, run, also)
        error = alone.exception()
        finished()
        if error is None:
            return alone.result()
    return failure(run, "its process was killed, perhaps because memory ran out")


def _workers(processes: int) -> Executor:
    # spawn: the parent may hold threads (a progress bar, a remote file system) that a fork breaks.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_die_silently_on_ctrl_c)


def _die_silently_on_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
