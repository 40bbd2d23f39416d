"""Many runs, in this process or in several; whatever happens to one, the others are analysed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stall_analyzer import outcome
from stall_analyzer.model import Run
from stall_analyzer.outcome import Also, Outcome


def analyze_all(
    runs: Sequence[Run],
    processes: int,
    finished: Callable[[], None] = lambda: None,
    also: Also | None = None,
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `finished` is called after each."""
    if processes > 1:
        from stall_analyzer import pool  # noqa: PLC0415  its imports cost one process dearly

        return pool.analyze_all(runs, processes, finished, also)
    return [_reported(outcome.analyze_one(run, also), finished) for run in runs]


def _reported(made: Outcome, finished: Callable[[], None]) -> Outcome:
    finished()
    return made
