"""How far along an analysis is, for those who wait: the share that is done, and what comes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from stall_analyzer.model.format import size
from stall_analyzer.model.runs import Run

# The share that is done, from 0 to 1, and what comes next.
Progress: TypeAlias = Callable[[float, str], None]

READING_SHARE = 0.75  # of the total time, for large files
DIVIDING_SHARE = 0.8  # once the first epoch is found, and its time is about to be divided
# How long reading a byte takes, relative to a byte of a trace: Python reads the other files.
EVENT_FILE_WEIGHT = 30
LEAST_MOVE = 0.005  # the least that a progress bar can show


def ignore_progress(share: float, text: str) -> None: ...


class Reading:
    """Turns "this many bytes of this file" into a share of everything there is to read."""

    def __init__(self, run: Run, progress: Progress) -> None:
        traces = sum(host.size for session in run.sessions for host in session.hosts)
        events = sum(file.size for file in run.event_files)
        self._whole = max(traces + EVENT_FILE_WEIGHT * events, 1)
        self._begun = 0
        self._progress = progress

    def file(self, what: str, file_size: int, weight: int = 1) -> Callable[[int], None]:
        """Gives a function to call with the bytes read so far; 0 is reported at once."""
        before, last_told = self._begun, -1.0
        self._begun += weight * file_size

        def read(done: int) -> None:
            nonlocal last_told
            # A file may have grown since it was found, but must not eat into the share of the next
            # one.
            inside = min(done, file_size)
            share = READING_SHARE * (before + weight * inside) / self._whole
            if share >= last_told + LEAST_MOVE:
                last_told = share
                self._progress(share, f"reading {what}: {size(inside)} of {size(file_size)}")

        read(0)
        return read
