"""Sums over all runs: what the fleet lost, to what, and in which runs.

Everything here grows with the kinds of things found and with the days, not with the runs. Times of
machines count each host of a run, since all of them wait when the run does.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Generic, TypeVar

from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.kinds import Bucket, Status
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.report.facts import Facts, Name, lost_in, machine_loss_ps, machines

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        CostlyRunEntry,
        FleetEntry,
        FleetFindingEntry,
        WorstRunEntry,
    )

WORST_RUNS = 10
ERRORS_SHOWN = 20
NS_PER_S = PS_PER_S // 1000

Costly = TypeVar("Costly", bound="WorstRunEntry")


@dataclass
class _Worst(Generic[Costly]):
    """The few runs that cost most, in an order that does not depend on which came first."""

    most: int
    heap: list[tuple[int, str, int, int, Costly]] = field(default_factory=list)
    added: int = 0

    def add(self, run: Costly) -> None:
        self.added += 1  # only so that two of one name can be ordered
        order = run["machine_ps"], run["run"], run["attempt"], self.added
        heapq.heappush(self.heap, (*order, run))
        if len(self.heap) > self.most:
            heapq.heappop(self.heap)

    def in_order(self) -> list[Costly]:
        return [about for *_, about in sorted(self.heap, reverse=True)]


@dataclass
class _Kind:
    """One kind of finding over the fleet."""

    name: str
    bucket: Bucket
    runs: int = 0
    machine_ps: int = 0
    gain_low_ps: int = 0
    gain_high_ps: int = 0
    worst: _Worst[WorstRunEntry] = field(default_factory=lambda: _Worst(1))


@dataclass
class _Day:
    statuses: Counter[Status] = field(default_factory=Counter)
    buckets_ps: Counter[Bucket] = field(default_factory=Counter)


class Fleet:
    def __init__(self) -> None:
        self._statuses: Counter[Status] = Counter()
        self._status_ps: Counter[Status] = Counter()
        self._primaries: Counter[Bucket] = Counter()
        self._buckets_ps: Counter[Bucket] = Counter()
        self._causes_ps: Counter[str] = Counter()
        self._kinds: dict[str, _Kind] = {}
        self._days: dict[str, _Day] = defaultdict(_Day)
        self._worst: _Worst[CostlyRunEntry] = _Worst(WORST_RUNS)
        self._hosts = 0
        self.runs = 0
        self.with_errors = 0
        self._errors: list[tuple[str, int, str]] = []

    def add(self, facts: Facts) -> None:
        count, status = machines(facts), facts["status"]
        self.runs += 1
        self._hosts += count
        self._statuses[status] += 1
        self._status_ps[status] += count * facts["duration_ps"]
        self._primaries[facts["primary"]] += 1
        buckets = {bucket: count * ps for bucket, ps in facts["buckets_ps"].items()}
        self._buckets_ps.update(buckets)
        self._causes_ps.update({cause: count * ps for cause, ps in facts["causes_ps"].items()})
        day = self._days[_day(facts["started_unix_ns"])]
        day.statuses[status] += 1
        day.buckets_ps.update(buckets)
        self._add_findings(facts, count)
        self._worst.add(_costly(facts, count))
        if facts["errors"]:
            self.with_errors += 1
            self._errors.append((facts["run"], facts["attempt"], facts["errors"][0]))
            if len(self._errors) > 10 * ERRORS_SHOWN:
                self._errors = sorted(self._errors)[:ERRORS_SHOWN]

    def _add_findings(self, facts: Facts, count: int) -> None:
        for found in facts["findings"]:
            kind = self._kinds.setdefault(found["id"], _Kind(found["name"], found["bucket"]))
            lost = count * found["lost_ps"]
            kind.runs += 1
            kind.machine_ps += lost
            kind.gain_low_ps += count * found["gain_ps"]["low"]
            kind.gain_high_ps += count * found["gain_ps"]["high"]
            worst: WorstRunEntry = {
                "run": facts["run"],
                "attempt": facts["attempt"],
                "machine_ps": lost,
            }
            kind.worst.add(worst)

    def summary(self) -> FleetEntry:
        """Plain data: `fleet` in schema.json."""
        kinds = sorted(self._kinds.items(), key=lambda kind: (-kind[1].machine_ps, kind[0]))
        return {
            "runs": self.runs,
            "hosts": self._hosts,
            "statuses": [
                {"status": status, "runs": runs, "machine_ps": self._status_ps[status]}
                for status, runs in _largest_first(self._statuses)
            ],
            "primaries": dict(_largest_first(self._primaries)),
            "lost_ps": lost_in(self._buckets_ps),
            "buckets_ps": {bucket: self._buckets_ps[bucket] for bucket in BUCKETS},
            "causes_ps": {cause: ps for cause, ps in _largest_first(self._causes_ps) if ps},
            "findings": [_finding(id_, kind) for id_, kind in kinds],
            "costliest_runs": self._worst.in_order(),
            "days": [
                {
                    "day": name or None,
                    "statuses": dict(_largest_first(day.statuses)),
                    "lost_ps": lost_in(day.buckets_ps),
                    "buckets_ps": {bucket: day.buckets_ps[bucket] for bucket in BUCKETS},
                }
                for name, day in sorted(self._days.items())
            ],
            "runs_with_errors": self.with_errors,
            "errors": [
                {"run": run, "attempt": attempt, "text": text}
                for run, attempt, text in sorted(self._errors)[:ERRORS_SHOWN]
            ],
        }


def _costly(facts: Facts, count: int) -> CostlyRunEntry:
    return {
        "run": facts["run"],
        "attempt": facts["attempt"],
        "machine_ps": machine_loss_ps(facts),
        "hosts": count,
        "status": facts["status"],
        "primary": facts["primary"],
        "duration_ps": facts["duration_ps"],
        "sentence": facts["sentence"],
    }


def _finding(id_: str, kind: _Kind) -> FleetFindingEntry:
    return {
        "id": id_,
        "name": kind.name,
        "bucket": kind.bucket,
        "runs": kind.runs,
        "machine_ps": kind.machine_ps,
        "gain_ps": {"low": kind.gain_low_ps, "high": kind.gain_high_ps},
        "worst": kind.worst.in_order()[0],
    }


def _largest_first(counts: Mapping[Name, int]) -> list[tuple[Name, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _day(unix_ns: int | None) -> str:
    """In UTC, so that all who look at it see the same; empty where the run has no clock."""
    if unix_ns is None:
        return ""
    try:
        moment = datetime.fromtimestamp(unix_ns // NS_PER_S, tz=timezone.utc)
    except (OverflowError, OSError, ValueError):  # a clock that was never set
        return ""
    return f"{moment:%Y-%m-%d}"
