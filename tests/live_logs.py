"""Log directories in which captured processes still write, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.live.followed_run import FollowedRun, RunState
from tests import captures
from tests import event_files as write
from tests.captures import NS, START_NS

USUAL = {"wait": 0.7, "step": 0.3}
TRACED = {"trace": 10.0, "wait": 0.7, "step": 0.3}


HEADER = write.framed(write.file_version())


def books(
    at_s: float,
    rows_s: Sequence[Mapping[str, float]],
    phase: str = "train",
    epoch: int = 0,
    steps: int = 1,
    **fields: Any,
) -> bytes:
    """Rows from `at_s` on, each with the time in its accounts and its number of steps."""
    rows = [{account: round(s * NS) for account, s in row.items()} for row in rows_s]
    lasted = [sum(row.values()) for row in rows]
    accounts = dict.fromkeys(account for row in rows for account in row)
    return captures.record(
        "books",
        at_s + sum(lasted) / NS,
        began_ns=START_NS + round(at_s * NS),
        phase=phase,
        epoch=epoch,
        lasted_ns=lasted,
        steps=[steps] * len(rows),
        calls=[1] * len(rows),
        spent_ns={account: [row.get(account, 0) for row in rows] for account in accounts},
        **fields,
    )


def fit(steps: int | None = None) -> bytes:
    return captures.record("mark", 0.0, what="fit_begin", step=0, steps=steps)


def epoch(at_s: float, number: int = 0, step: int = 0) -> bytes:
    return captures.mark("epoch_begin", at_s, number, step)


class LiveLog:
    """A log directory in which processes write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, *parts: bytes, pid: int = 100) -> None:
        path = self.folder / captures.file_name(pid=pid)
        with path.open("ab") as stream:
            stream.write(b"".join((b"" if path.stat().st_size else HEADER, *parts)))

    def followed(self) -> FollowedRun:
        (run,) = find_runs([str(self.folder)]).runs
        return FollowedRun(run)

    def state(self, now_s: float) -> RunState:
        return looked_at(self.followed(), now_s)


def looked_at(followed: FollowedRun, now_s: float) -> RunState:
    followed.read_new()
    return followed.state(START_NS + round(now_s * NS))


def worker(log: LiveLog, index: int, rows: Sequence[Mapping[str, float]]) -> None:
    start = captures.start({"type": "worker", "index": index}, workers=2, pid=100 + index)
    log.append(start, fit(50), epoch(0.0), books(0.0, rows), pid=100 + index)
