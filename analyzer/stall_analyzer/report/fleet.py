"""Sums over all runs: what the fleet lost, to which causes, and in which runs.

Everything here grows with the kinds of things found and with the days, not with the runs. Machine
time counts each host of a run, since all of them wait when the run does.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, get_args

from stall_analyzer.model.kinds import Bucket, Status
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.report.facts import Facts, Name, lost_in, machine_loss_ps, machines

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        CostlyRunEntry,
        FindingSummaryEntry,
        FleetEntry,
        FleetFindingEntry,
        WorstRunEntry,
    )

BUCKETS: tuple[Bucket, ...] = get_args(Bucket)  # causes.py would load numpy
WORST_RUNS = 10
ERRORS_SHOWN = 20
NOT_TRACED = ("ST411", "ST412")  # notes that say how much was not traced
NS_PER_S = PS_PER_S // 1000


@dataclass
class _Day:
    """The runs of one day."""

    statuses: Counter[Status] = field(default_factory=Counter)
    buckets_ps: Counter[Bucket] = field(default_factory=Counter)


class Fleet:
    def __init__(self) -> None:
        self._statuses: Counter[Status] = Counter()
        self._status_ps: Counter[Status] = Counter()
        self._primaries: Counter[Bucket] = Counter()
        self._buckets_ps: Counter[Bucket] = Counter()
        self._causes_ps: Counter[str] = Counter()
        self._kinds: dict[str, FleetFindingEntry] = {}
        self._days: dict[str, _Day] = defaultdict(_Day)
        self._worst: list[CostlyRunEntry] = []
        self._hosts = 0
        self.runs = 0
        self._estimated = 0
        self.with_errors = 0
        self._errors: list[tuple[str, int, str]] = []

    def add(self, facts: Facts) -> None:
        count, status = machines(facts), facts["status"]
        self.runs += 1
        self._estimated += facts["estimated"]
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
        self._worst = heapq.nlargest(WORST_RUNS, [*self._worst, _costly(facts, count)], key=_cost)
        if facts["errors"]:
            self.with_errors += 1
            self._errors.append((facts["run"], facts["attempt"], facts["errors"][0]))
            if len(self._errors) > 10 * ERRORS_SHOWN:
                self._errors = sorted(self._errors)[:ERRORS_SHOWN]

    def _add_findings(self, facts: Facts, count: int) -> None:
        for found in facts["findings"]:
            lost = count * _lost_ps(found)
            run: WorstRunEntry = {
                "run": facts["run"],
                "attempt": facts["attempt"],
                "machine_ps": lost,
            }
            kind = self._kinds.setdefault(found["id"], _kind(found, run))
            kind["runs"] += 1
            kind["machine_ps"] += lost
            kind["gain_ps"]["low"] += count * found["gain_ps"]["low"]
            kind["gain_ps"]["high"] += count * found["gain_ps"]["high"]
            kind["worst"] = max(kind["worst"], run, key=_cost)

    def summary(self) -> FleetEntry:
        """As plain data: `fleet` in schema.json."""
        kinds = sorted(self._kinds.values(), key=lambda kind: (-kind["machine_ps"], kind["id"]))
        return {
            "runs": self.runs,
            "estimated_runs": self._estimated,
            "hosts": self._hosts,
            "statuses": [
                {"status": status, "runs": runs, "machine_ps": self._status_ps[status]}
                for status, runs in _largest_first(self._statuses)
            ],
            "primaries": dict(_largest_first(self._primaries)),
            "lost_ps": lost_in(self._buckets_ps),
            "buckets_ps": {bucket: self._buckets_ps[bucket] for bucket in BUCKETS},
            "causes_ps": {cause: ps for cause, ps in _largest_first(self._causes_ps) if ps},
            "findings": kinds,
            "costliest_runs": self._worst,
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


def _lost_ps(found: FindingSummaryEntry) -> int:
    """What was not traced may have been anything: it is no cost of a note that says so."""
    return 0 if found["id"] in NOT_TRACED else found["lost_ps"]


def _costly(facts: Facts, count: int) -> CostlyRunEntry:
    return {
        "run": facts["run"],
        "attempt": facts["attempt"],
        "machine_ps": machine_loss_ps(facts),
        "hosts": count,
        "status": facts["status"],
        "primary": facts["primary"],
        "duration_ps": facts["duration_ps"],
        "estimated": facts["estimated"],
        "sentence": facts["sentence"],
    }


def _kind(found: FindingSummaryEntry, worst: WorstRunEntry) -> FleetFindingEntry:
    """The entry of one kind of finding in the fleet, before its runs are counted."""
    return {
        "id": found["id"],
        "name": found["name"],
        "bucket": found["bucket"],
        "runs": 0,
        "machine_ps": 0,
        "gain_ps": {"low": 0, "high": 0},
        "worst": worst,
    }


def _cost(run: WorstRunEntry) -> tuple[int, str, int]:
    """A sort key that does not depend on which run came first."""
    return run["machine_ps"], run["run"], run["attempt"]


def _largest_first(counts: Mapping[Name, int]) -> list[tuple[Name, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _day(unix_ns: int | None) -> str:
    """In UTC, so that everyone sees the same; empty if the run has no clock."""
    if unix_ns is None:
        return ""
    try:
        moment = datetime.fromtimestamp(unix_ns // NS_PER_S, tz=timezone.utc)
    except (OverflowError, OSError, ValueError):  # a clock that was never set
        return ""
    return f"{moment:%Y-%m-%d}"
