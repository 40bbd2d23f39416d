"""Which captured runs are in progress right now, and how far they are."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stall_analyzer.discover.attempts import writer_of
from stall_analyzer.model.runs import Run

if TYPE_CHECKING:
    from stall_analyzer.live.entry import LiveEntry
    from stall_analyzer.live.followed_run import FollowedRun

# A capture writes once a second, but several pages may ask more often.
REMEMBERED_S = 1.0
# How long a silent process is followed: twice as long as it takes to be considered dead.
FOLLOWED_S = 240.0

logger = logging.getLogger("tensorboard")


@dataclass(frozen=True)
class Looked:
    """The result of one look; runs are given by name."""

    going_on: Mapping[str, LiveEntry] = field(default_factory=dict)
    # Runs that ended since the last look. Their verdict changes even if their files did not.
    ended: frozenset[str] = frozenset()


class LiveRuns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[str, FollowedRun] = {}
        self._given_up: set[str] = set()
        self._last = Looked()
        self._good_until_s = 0.0

    def look(self, runs: Mapping[str, Run]) -> Looked:
        with self._lock:
            if time.monotonic() < self._good_until_s:
                return Looked(self._last.going_on)
            self._last = self._look(runs)
            self._good_until_s = time.monotonic() + REMEMBERED_S
            return self._last

    def _look(self, runs: Mapping[str, Run]) -> Looked:
        self._follow(runs)
        if not self._followed:
            return Looked(ended=frozenset(self._last.going_on))
        entries = {name: self._entry(name, one) for name, one in self._followed.items()}
        going_on = {name: entry for name, entry in entries.items() if entry is not None}
        return Looked(going_on, frozenset(self._last.going_on.keys() - going_on.keys()))

    def _entry(self, name: str, followed: FollowedRun) -> LiveEntry | None:
        """None if the run is not in progress."""
        from stall_analyzer.live.entry import live_entry  # noqa: PLC0415  rarely needed

        try:
            followed.read_new()
            state = followed.state(time.time_ns())
            return None if state.is_over else live_entry(state)
        except Exception:  # a bug of ours that one run triggers must not hide the others
            logger.exception("The Stall tab cannot follow the run %s", name)
            self._given_up.add(name)
            return None

    def _follow(self, runs: Mapping[str, Run]) -> None:
        since_s = time.time() - FOLLOWED_S
        fresh = {
            name: run
            for name, run in runs.items()
            if name not in self._given_up and _is_captured_since(run, since_s)
        }
        self._followed = {name: one for name, one in self._followed.items() if name in fresh}
        for name, run in fresh.items():
            if name in self._followed:
                self._followed[name].found(run)
            else:
                from stall_analyzer.live.followed_run import FollowedRun  # noqa: PLC0415

                self._followed[name] = FollowedRun(run)


def _is_captured_since(run: Run, since_s: float) -> bool:
    if (run.changed_unix_s or 0.0) < since_s:
        return False
    writers = (writer_of(file.path) for file in run.event_files)
    return any(writer is not None and writer.captures for writer in writers)
