"""Where the work is done: in this process. `parallel` does it in several, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from stall_analyzer.errors import StallError
from stall_analyzer.model.runs import Run
from stall_analyzer.results.run_result import RunResult, result_of

if TYPE_CHECKING:
    from stall_analyzer.results.worker_process import Work

# Does some work on each run. Yields each run with its result, as they come, or with the failure if
# it could not be analyzed.
Engine: TypeAlias = "Callable[[Iterable[Run], Work[RunResult]], Iterator[tuple[Run, RunResult]]]"
# A run, and the share of its analysis that is done.
Watch: TypeAlias = Callable[[Run, float], None]


def unwatched(run: Run, share: float) -> None: ...


@contextmanager
def in_this_process(watch: Watch = unwatched) -> Iterator[Engine]:
    """One run after the other, for a few small ones."""

    def engine(runs: Iterable[Run], work: Work[RunResult]) -> Iterator[tuple[Run, RunResult]]:
        for run in runs:
            yield run, _result(run, work, watch)

    yield engine


def _result(run: Run, work: Work[RunResult], watch: Watch) -> RunResult:
    try:
        return work(run, lambda share, _: watch(run, share))
    except StallError:
        raise
    except Exception as error:  # a bug of ours
        return failed(run, f"{type(error).__name__}: {error}")


def failed(run: Run, reason: str) -> RunResult:
    from stall_analyzer.outcome import failure  # noqa: PLC0415  all of an analysis comes with it

    return result_of(run, failure(run, reason))
