"""Many runs, in this process or in several; whatever happens to one, the others are analysed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from stall_analyzer import outcome
from stall_analyzer.model import Run
from stall_analyzer.outcome import Also, Outcome

# Which run, by its place among them, and how much of it is done, from 0 to 1.
Watch: TypeAlias = Callable[[int, float], None]


def analyze_all(
    runs: Sequence[Run],
    processes: int,
    watch: Watch = lambda number, share: None,
    also: Also | None = None,
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `watch` hears how far each is, at last 1.0."""
    if processes > 1:
        from stall_analyzer import pool  # noqa: PLC0415  its imports cost one process dearly

        return pool.analyze_all(runs, processes, watch, also)
    return [_analyze_one(number, run, watch, also) for number, run in enumerate(runs)]


def _analyze_one(number: int, run: Run, watch: Watch, also: Also | None) -> Outcome:
    made = outcome.analyze_one(run, also, lambda share, _: watch(number, share))
    watch(number, 1.0)
    return made
