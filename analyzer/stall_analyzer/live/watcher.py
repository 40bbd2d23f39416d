"""The captured runs under a log directory: found, followed, and looked at."""

from __future__ import annotations

import time
from collections.abc import Iterable

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.live.followed_run import FollowedRun, RunState, captured_files
from stall_analyzer.model.runs import Run
from stall_analyzer.model.units import NS_PER_S
from stall_analyzer.outcome import analyze_one
from stall_analyzer.signals.ending.process_end import SILENT_NS

FIND_PAUSE_S = 2.0
# A log directory may hold thousands of runs: looking for new ones takes at most this share of the
# time.
FINDING_SHARE = 0.05


class Watcher:
    def __init__(self, logdir: str) -> None:
        self._logdir = logdir
        self._followed: dict[tuple[str, int], FollowedRun] = {}
        self._find_at_s = 0.0
        self._is_first = True
        self.left_out = 0  # runs that had ended before the first look

    def look(self) -> tuple[RunState, ...]:
        """All runs that are followed, including those that are over."""
        if time.monotonic() >= self._find_at_s:
            self._find()
        for followed in self._followed.values():
            followed.read_new()
        now_ns = time.time_ns()
        return tuple(followed.state(now_ns) for followed in self._followed.values())

    def verdict(self, state: RunState) -> str:
        """The sentence of the full analysis, as the command prints it."""
        self._find()
        run = self._followed[state.run.name, state.run.attempt].run
        return analyze_one(run).entry["verdict"]["sentence"]

    def _find(self) -> None:
        began_s = time.monotonic()
        captured = [run for run in find_runs([self._logdir]).runs if captured_files(run)]
        for run in self._worth_following(captured):
            key = run.name, run.attempt
            if key in self._followed:
                self._followed[key].found(run)
            else:
                self._followed[key] = FollowedRun(run)
        if self._is_first:
            self.left_out = len(captured) - len(self._followed)
        self._is_first &= not captured
        now_s = time.monotonic()
        self._find_at_s = now_s + max(FIND_PAUSE_S, (now_s - began_s) / FINDING_SHARE)

    def _worth_following(self, captured: list[Run]) -> Iterable[Run]:
        """Runs that were written to recently; on the first look, if there are none, the newest."""
        since_s = time.time() - SILENT_NS / NS_PER_S
        known = [run for run in captured if (run.name, run.attempt) in self._followed]
        new = [run for run in captured if _changed_s(run) >= since_s and run not in known]
        newest = [max(captured, key=_changed_s)] if captured else []
        return [*known, *(new or (newest if self._is_first else ()))]


def _changed_s(run: Run) -> float:
    return run.changed_unix_s or 0.0
