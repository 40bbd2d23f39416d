"""Many runs, in this process or in several; whatever happens to one, the others are analysed.

A run becomes its entry of the JSON document in the process that analysed it, so that only plain
data crosses from one process to another.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from stall_analyzer.causes import BUCKETS
from stall_analyzer.model import Run
from stall_analyzer.pipeline import analyze
from stall_analyzer.report.json import document


@dataclass(frozen=True)
class Outcome:
    """One run's entry of the JSON document, and the traceback where our own code failed on it."""

    entry: dict[str, Any]
    traceback: str = ""


def analyze_all(
    runs: Sequence[Run], processes: int, finished: Callable[[], None] = lambda: None
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `finished` is called after each."""
    if processes <= 1:
        return [_reported(analyze_one(run), finished) for run in runs]
    with _workers(processes) as pool:
        futures = {pool.submit(analyze_one, run): run for run in runs}
        try:
            for future in as_completed(futures):
                if not isinstance(future.exception(), BrokenProcessPool):
                    finished()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [_result(future, run, finished) for future, run in futures.items()]


def analyze_one(run: Run) -> Outcome:
    try:
        return Outcome(document([analyze(run)], notes=())["runs"][0])
    except Exception as error:  # a fault of ours in one run must not hide the others
        return _failure(run, f"{type(error).__name__}: {error}", traceback.format_exc())


def _reported(outcome: Outcome, finished: Callable[[], None]) -> Outcome:
    finished()
    return outcome


def _result(future: Future[Outcome], run: Run, finished: Callable[[], None]) -> Outcome:
    """A killed worker takes the whole pool with it: its victims get a process of their own."""
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, BrokenProcessPool):
        return _failure(run, f"{type(error).__name__}: {error}")
    with _workers(1) as pool:
        alone = pool.submit(analyze_one, run)
        error = alone.exception()
        finished()
        if error is None:
            return alone.result()
    return _failure(run, "its process was killed, perhaps because memory ran out")


def _workers(processes: int) -> Executor:
    # spawn: the parent may hold threads (a progress bar, a remote file system) that a fork breaks.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_die_silently_on_ctrl_c)


def _die_silently_on_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _failure(run: Run, reason: str, trace: str = "") -> Outcome:
    """An entry that says nothing about the training, and why."""
    text = f"This run could not be analysed: {reason}. This is a fault of stall-analyze."
    entry = {
        "run": run.name,
        "attempt": run.attempt,
        "sessions": [session.id for session in run.sessions],
        "hosts": sorted({host.host for session in run.sessions for host in session.hosts}),
        "window": {
            "start_unix_ns": None,
            "duration_ps": 0,
            "epoch": 0,
            "covered_ps": 0,
            "source": "events",
        },
        "verdict": {
            "status": "unknown",
            "primary": "unknown",
            "sentence": "This run could not be analysed.",
            "confidence": 0.0,
        },
        "buckets_ps": dict.fromkeys(BUCKETS, 0),
        "causes_ps": {},
        "one_time_ps": 0,
        "recurring_ps": 0,
        "phases": [],
        "steps": [],
        "host_ledgers": [],
        "later_epochs": {"count": 0, "median_ps": None},
        "findings": [],
        "plan": None,
        "evidence": {},
        "notes": [{"level": "error", "text": text, "where": run.path}],
    }
    return Outcome(entry, trace)
