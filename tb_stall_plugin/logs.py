"""Where TensorBoard was told to look, and the runs it finds there.

--logdir PATH                    a folder (relative or absolute) or a URL
--logdir_spec NAME:PATH,PATH     several, with or without a name
"""

from __future__ import annotations

import os
import re
import threading
import time
from dataclasses import dataclass, replace

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.discover.run_folder import EVENT_FILE, RAW_TRACES
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import Run
from stall_analyzer.report.page import run_ids

# A page that waits for an analysis asks several times a second; there is no need to walk the
# folders again for each request.
REMEMBERED_S = 1.0
# The next look comes this many times as long after the last as that took: rarely, where looking
# takes a long time (thousands of runs, a remote file system).
REMEMBERED_LOOKS = 10
# Before it shows anything, TensorBoard asks every plugin in turn whether it is active.
LONGEST_LOOK_S = 1.0
NAMELESS = re.compile(r"/|[A-Za-z][0-9A-Za-z.]*://")


@dataclass(frozen=True)
class Found:
    """All runs, by the name that the page uses."""

    runs: dict[str, Run]
    problems: tuple[Note, ...] = ()


class Logs:
    def __init__(self, logdir: str, spec: str = "") -> None:
        self.words = logdir or spec
        self._roots = [("", _expanded(logdir))] if logdir else _parts_of(spec)
        self._lock = threading.Lock()
        self._last: Found | None = None
        self._looked_at = self._good_until = 0.0
        self._seen_any = False

    def find(self, fresh: bool = False) -> Found:
        """The runs as of a moment ago; with `fresh`, as of right now."""
        asked = time.monotonic()
        with self._lock:
            began = time.monotonic()
            is_old = began > self._good_until or (fresh and self._looked_at < asked)
            if self._last is None or is_old:
                self._last = self._look()
                ended = time.monotonic()
                self._looked_at = began
                self._good_until = ended + max(REMEMBERED_S, REMEMBERED_LOOKS * (ended - began))
            return self._last

    def has_any(self) -> bool:
        """Whether there are any logs, found as quickly as possible, without reading any."""
        if not self._seen_any:
            until = time.monotonic() + LONGEST_LOOK_S
            self._seen_any = any(_has_logs(path, until) for _, path in self._roots)
        return self._seen_any

    def _look(self) -> Found:
        runs: list[Run] = []
        problems: list[Note] = []
        named = [(name, [path]) for name, path in self._roots if name]
        nameless = [path for name, path in self._roots if not name]
        for name, paths in [("", nameless), *named]:
            found = find_runs([files.absolute(path) for path in paths])
            runs += (_under(name, run) for run in found.runs)
            problems += found.notes
        ids = run_ids((run.name, run.attempt) for run in runs)
        return Found(dict(zip(ids, runs, strict=True)), tuple(problems))


def _under(name: str, run: Run) -> Run:
    if not name:
        return run
    return replace(run, name=name if run.name == "." else f"{name}/{run.name}")


def _has_logs(path: str, until: float) -> bool:
    try:
        for folder in files.walk(path):
            if any(EVENT_FILE in name or name.endswith(RAW_TRACES) for name in folder.names):
                return True
            if time.monotonic() > until:
                return False
    except UnreadableFile:  # the tab says why when somebody opens it
        pass
    return False


def _parts_of(spec: str) -> list[tuple[str, str]]:
    """Parsed as TensorBoard does: a name may come before a colon, but an absolute path, a URL or a
    drive is not split at its colon."""
    parts = []
    for part in filter(None, spec.split(",")):
        nameless = ":" not in part or NAMELESS.match(part) or os.path.splitdrive(part)[0]
        name, _, path = ("", "", part) if nameless else part.partition(":")
        parts.append((name, _expanded(path)))
    return parts


def _expanded(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111  pathlib's raises for an unknown user
