"""Which runs are wanted: by name, by the time of their last change, by shard."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass

if TYPE_CHECKING:
    from stall_analyzer.model.runs import Run
    from stall_analyzer.report.facts import Facts

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = pattern(r"(?P<number>\d+(\.\d+)?) ?(?P<unit>ms|s|m|min|h|d|w)")
_SHARE = pattern(r"(?P<percent>\d+(\.\d+)?) ?%")
_SHARD = pattern(r"(?P<index>\d+)/(?P<count>[1-9]\d*)")

ALL = (0, 1)  # shards: which, of how many


@dataclass(frozen=True)
class Selection:
    """Which of the runs that were found are wanted."""

    names: Sequence[str] = ()  # patterns: one must match
    since_unix_s: float | None = None
    shard: tuple[int, int] = ALL
    console: str = ""  # a file that one of them wrote to its terminal

    @property
    def leaves_out(self) -> bool:
        """Whether not every run is wanted."""
        return bool(self.names) or self.since_unix_s is not None or self.shard != ALL

    def has_name(self, run: Run) -> bool:
        return not self.names or any(fnmatchcase(run.name, name) for name in self.names)

    def is_new(self, run: Run) -> bool:
        """A run may be new if it is not known when it changed."""
        changed = run.changed_unix_s
        return self.since_unix_s is None or changed is None or changed >= self.since_unix_s

    def is_of_shard(self, run: Run) -> bool:
        """All attempts of a run are in the same shard, and every machine agrees on which one."""
        index, count = self.shard
        return zlib.crc32(run.name.encode(errors="replace")) % count == index


@dataclass(frozen=True)
class Interest:
    """Which of the runs that were read are wanted: one word of each kind must match."""

    statuses: Sequence[str] = ()
    buckets: Sequence[str] = ()  # one of which costs the most
    findings: Sequence[str] = ()  # ids

    def holds(self, facts: Facts) -> bool:
        found = {finding["id"] for finding in facts["findings"]}
        return (
            (not self.statuses or facts["status"] in self.statuses)
            and (not self.buckets or facts["primary"] in self.buckets)
            and (not self.findings or not found.isdisjoint(self.findings))
        )


def parse_duration(text: str) -> float:
    """Seconds: `90s`, `30m`, `2h`, `3d`. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as 90s, 30m, 2h or 3d")
    return float(match["number"]) * _UNITS_S[match["unit"]]


def parse_share(text: str) -> float:
    """`20%` is 0.2. Raises ValueError."""
    match = _SHARE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a share such as 20%")
    return float(match["percent"]) / 100


def parse_since(text: str) -> float:
    """Unix seconds: `3d` is three days ago; a date, with or without a time, is local."""
    try:
        return time.time() - parse_duration(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(f"{text!r} is neither a date (2026-11-01) nor a duration (3d)") from None


def parse_shard(text: str) -> tuple[int, int]:
    match = _SHARD.fullmatch(text)
    if match is None or int(match["index"]) >= int(match["count"]):
        raise ValueError(f"{text!r} is not a shard such as 0/4, 1/4, 2/4 or 3/4")
    return int(match["index"]), int(match["count"])
