"""Many runs in several processes. A process that is killed takes only its own run with it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeAlias

from stall_analyzer import outcome
from stall_analyzer.model import Run
from stall_analyzer.outcome import Also, Outcome, failure

LOOK_EVERY_S = 0.2
# spawn: the parent may hold threads (a progress bar, a remote file system) that a fork breaks.
CONTEXT = multiprocessing.get_context("spawn")
# How much of each run is done, in memory that all processes share.
Shares: TypeAlias = Any

_shares: Shares = ()  # in a worker: those of the parent


def analyze_all(
    runs: Sequence[Run],
    processes: int,
    watch: Callable[[int, float], None],
    also: Also | None = None,
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `watch` hears how far each is, at last 1.0."""
    shares = CONTEXT.RawArray("d", len(runs))
    work = outcome.analyze_one
    with _workers(processes, shares) as pool:
        futures = [
            pool.submit(_analyze, work, run, also, number) for number, run in enumerate(runs)
        ]
        try:
            waiting: set[Future[Outcome]] = set(futures)
            while waiting:
                _, waiting = wait(waiting, timeout=LOOK_EVERY_S)
                for number, share in enumerate(shares):
                    watch(number, share)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    outcomes = []
    for number, (run, future) in enumerate(zip(runs, futures, strict=True)):
        outcomes.append(_result(future, run, also))
        watch(number, 1.0)
    return outcomes


def _result(future: Future[Outcome], run: Run, also: Also | None) -> Outcome:
    """A killed worker takes the whole pool with it: its victims get a process of their own."""
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, BrokenProcessPool):
        return failure(run, f"{type(error).__name__}: {error}")
    with _workers(1, CONTEXT.RawArray("d", 1)) as pool:
        alone = pool.submit(_analyze, outcome.analyze_one, run, also, 0)
        if alone.exception() is None:
            return alone.result()
    return failure(run, "its process was killed, perhaps because memory ran out")


def _workers(processes: int, shares: Shares) -> Executor:
    return ProcessPoolExecutor(
        processes, mp_context=CONTEXT, initializer=_prepare, initargs=(shares,)
    )


# ---------------------------------------------------------------- in a worker


def _prepare(shares: Shares) -> None:
    global _shares  # noqa: PLW0603  a process can be told so much only when it starts
    _shares = shares
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback


def _analyze(work: Callable[..., Outcome], run: Run, also: Also | None, number: int) -> Outcome:
    def progress(share: float, _: str) -> None:
        _shares[number] = share

    made = work(run, also, progress)
    _shares[number] = 1.0
    return made
