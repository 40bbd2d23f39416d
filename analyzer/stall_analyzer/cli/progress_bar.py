"""How far along a batch is, on stderr: a bar for a person, a line now and then for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stall_analyzer.model.runs import Run

# The fixed cost of a run, in bytes: hundreds of small runs take as long as one of 1 GB.
BASE_BYTES = 8 << 20
WORTH_BYTES = 64 << 20  # below this, it is over too soon for a bar
WORTH_RUNS = 20
LINE_EVERY_S = 30.0
SEEN_EVERY = 100


class BatchProgress:
    """How much of the reading is done, by runs and by bytes."""

    def __init__(self, runs: int, size: int, show: Callable[[BatchProgress], None]) -> None:
        self.runs, self.runs_done = runs, 0
        self.weight, self.weight_done = size + BASE_BYTES * runs, 0.0
        self._begun_s = time.monotonic()
        self._show = show
        # The share of each run being read that is done.
        self._begun: dict[tuple[str, int], float] = {}

    def share(self, run: Run, share: float) -> None:
        name = (run.name, run.attempt)
        gained = max(share - self._begun.get(name, 0.0), 0.0)  # a process may report late
        self._begun[name] = self._begun.get(name, 0.0) + gained
        self.weight_done += gained * _weight(run)
        self._show(self)

    def done(self, run: Run) -> None:
        self.runs_done += 1
        self.share(run, 1.0)
        del self._begun[run.name, run.attempt]

    def in_words(self) -> str:
        """`1,200 of 5,000 runs, 13.2 per second, 4 min 48 s left`"""
        passed_s = max(time.monotonic() - self._begun_s, 1e-9)
        runs = counted_runs(self.runs)
        words = f"{self.runs_done:,} of {runs}, {self.runs_done / passed_s:.1f} per second"
        if self.runs_done:
            left_s = passed_s * (self.weight - self.weight_done) / max(self.weight_done, 1.0)
            words += f", {_spoken(left_s)} left"
        return words


def counted_runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


@contextmanager
def reading(runs: int, size: int, name: str = "") -> Iterator[BatchProgress]:
    """`name` is that of the run, if there is only one."""
    if runs <= WORTH_RUNS and size < WORTH_BYTES:
        yield BatchProgress(runs, size, lambda _: None)
    elif sys.stderr.isatty():
        with _bar(f"reading {name}" if name else "reading", size + BASE_BYTES * runs) as move:
            yield BatchProgress(runs, size, lambda now: move(now.weight_done, now.in_words()))
    else:
        yield BatchProgress(runs, size, _LogLines() if runs > WORTH_RUNS else lambda _: None)


@contextmanager
def finding() -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the number of runs found so far."""
    if not sys.stderr.isatty():
        yield lambda runs: None
        return

    def seen(runs: int) -> None:
        if runs % SEEN_EVERY == 0:
            print(f"\rlooking for runs: {runs:,} found", end="", file=sys.stderr, flush=True)
            shown.append(runs)

    shown: list[int] = []
    yield seen
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[float, str], None]]:
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[words]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(what), total=total, words="")
        yield lambda done, words: bar.update(task, completed=done, words=words)


class _LogLines:
    """For a log that is read the next morning."""

    def __init__(self) -> None:
        self._last_s = time.monotonic()

    def __call__(self, now: BatchProgress) -> None:
        if time.monotonic() - self._last_s >= LINE_EVERY_S:
            self._last_s = time.monotonic()
            print(now.in_words(), file=sys.stderr, flush=True)


def _weight(run: Run) -> int:
    return run.size + BASE_BYTES


def _spoken(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
