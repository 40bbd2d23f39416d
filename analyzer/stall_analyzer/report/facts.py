"""The short form of a run's entry in the JSON document, for lists, tables and sums over many runs.

It takes a few kilobytes, whatever the run: thousands fit where one entry with all its steps would
fill the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar, cast

from stall_analyzer.model.kinds import Bucket, Status, WindowSource

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import (
        AllBuckets,
        CauseTimes,
        Count,
        EstimateEntry,
        FindingEntry,
        FindingSummaryEntry,
        Positive,
        Ps,
        ReportEntry,
        Share,
    )

Name = TypeVar("Name", bound=str)

SCHEMA_VERSION: Final = 1  # of the JSON document

# Buckets that a faster program would not have; the others are work, measurement, or unknown.
LOST_BUCKETS: tuple[Bucket, ...] = (
    "input", "compile", "memory", "numerics", "communication", "host",
)  # fmt: skip
ERRORS_KEPT = 3
# First the runs whose training is wasted, then those that cost time.
BY_NEED: tuple[Status, ...] = (
    "dead", "stuck", "learning_nothing", "slow_always", "slow_once", "running", "unknown",
    "healthy",
)  # fmt: skip
DETAILS = (
    "blames",
    "estimated",
    "later_gain_at_least",
    "lines",
    "stack",
    "explanation",
    "change",
    "evidence",
)  # of a finding


class Facts(TypedDict):
    """The short form of a run's entry, for lists, tables and sums over many runs."""

    run: str
    attempt: Positive
    status: Status
    primary: Bucket
    sentence: str
    confidence: Share
    candidates: list[Bucket]  # The evidence cannot decide between these; empty if it can.
    duration_ps: Ps
    covered_ps: Ps
    source: WindowSource
    epoch: Count | None
    started_unix_ns: int | None
    estimated: bool  # Whether the next three are estimated, because not all was traced.
    buckets_ps: AllBuckets
    causes_ps: CauseTimes
    one_time_ps: Ps
    later_epochs: Count
    later_epoch_ps: Ps | None  # The median.
    hosts: list[str]
    sessions: list[str]
    steps: Count
    findings: list[FindingSummaryEntry]
    errors: list[str]  # What could not be read; at most three.


def figures(entry: ReportEntry) -> ReportEntry | EstimateEntry:
    """Where a run's time went: estimated if not all of it was traced, else measured. Every view
    shows these figures, so that no two views differ."""
    return entry["estimate"] or entry


def facts_of(entry: ReportEntry) -> Facts:
    window, verdict, later = entry["window"], entry["verdict"], entry["later_epochs"]
    spent = figures(entry)
    errors = [note["text"] for note in entry["notes"] if note["level"] == "error"]
    return {
        "run": entry["run"],
        "attempt": entry["attempt"],
        "status": verdict["status"],
        "primary": verdict["primary"],
        "sentence": verdict["sentence"],
        "confidence": verdict["confidence"],
        "candidates": verdict["candidates"],
        "duration_ps": window["duration_ps"],
        "covered_ps": window["covered_ps"],
        "source": window["source"],
        "epoch": window["epoch"],
        "started_unix_ns": window["start_unix_ns"],
        "estimated": entry["estimate"] is not None,
        "buckets_ps": spent["buckets_ps"],
        "causes_ps": spent["causes_ps"],
        "one_time_ps": spent["one_time_ps"],
        "later_epochs": later["count"],
        "later_epoch_ps": later["median_ps"],
        "hosts": entry["hosts"],
        "sessions": entry["sessions"],
        "steps": len(entry["steps"]),
        "findings": [_summary(found) for found in entry["findings"]],
        "errors": errors[:ERRORS_KEPT],
    }


def _summary(found: FindingEntry) -> FindingSummaryEntry:
    kept = {key: value for key, value in found.items() if key not in DETAILS}
    return cast("FindingSummaryEntry", kept)


def machines(facts: Facts) -> int:
    """How many machines wait when the run waits; a run without a trace used at least one."""
    return max(1, len(facts["hosts"]))


def lost_in(buckets_ps: Mapping[Bucket, int]) -> int:
    return sum(buckets_ps[bucket] for bucket in LOST_BUCKETS)


def lost_ps(facts: Facts) -> int:
    """What the first epoch lost, on one machine."""
    return lost_in(facts["buckets_ps"])


def machine_loss_ps(facts: Facts) -> int:
    """What it lost on all of its machines."""
    return machines(facts) * lost_ps(facts)


def need(status: Status, buckets_ps: Mapping[Bucket, int]) -> tuple[int, int]:
    """The order in which to look at runs: by verdict, then by the time lost."""
    return BY_NEED.index(status), -lost_in(buckets_ps)


def by_size(parts_ps: Mapping[Name, int]) -> list[tuple[Name, int]]:
    """The entries that are not zero, largest first."""
    return sorted(((name, ps) for name, ps in parts_ps.items() if ps), key=lambda part: -part[1])


def shown_name(run: str, attempt: int, folder: str = "") -> str:
    """With its attempt, if there were several; `folder` names a log directory that is a run."""
    name = folder if run == "." and folder else run
    return f"{name} (attempt {attempt})" if attempt > 1 else name
