"""What has become worse since an earlier result, run by run, matched by name and attempt.

A run is worse when its verdict is, or when its first epoch, a later epoch or a bucket takes longer
by more than the tolerance. For a bucket, the tolerance is a share of the former first epoch: one
that goes from a hundredth of it to two hundredths is noise, not twice as bad. `unknown` is left
out: a run that was traced less than before has not become slower. Buckets that were measured are
not held against buckets that are estimated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from stall_analyzer.errors import UsageError
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.report.facts import Facts, figures

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ReportEntry

# From good to bad; what is unknown, or not over, is neither better nor worse than anything.
RANKS = {
    "healthy": 0, "slow_once": 1, "slow_always": 2,
    "learning_nothing": 3, "stuck": 3, "dead": 3,
}  # fmt: skip
BUCKETS_COMPARED: tuple[Bucket, ...] = (
    "input", "compile", "memory", "numerics", "compute", "communication", "host",
)  # fmt: skip
RESULTS = (".json", ".jsonl")

Identity: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class Former:
    """What is needed of a run of the earlier result."""

    status: str
    duration_ps: int
    later_epoch_ps: int | None
    estimated: bool
    buckets_ps: Mapping[Bucket, int]


@dataclass(frozen=True)
class Worse:
    """A run that lost more than before."""

    run: str
    attempt: int
    status_before: str
    status: str
    before_ps: int  # the first epoch
    now_ps: int
    grown_ps: Mapping[str, int]  # what takes longer, largest first: buckets, "later epochs"


@dataclass
class Comparison:
    """Runs held against an earlier result."""

    former: dict[Identity, Former]
    tolerance: float
    compared: int = 0
    new: int = 0
    worse: list[Worse] = field(default_factory=list)

    def check(self, facts: Facts) -> None:
        before = self.former.get((facts["run"], facts["attempt"]))
        if before is None:
            self.new += 1
            return
        self.compared += 1
        found = compare(before, facts, self.tolerance)
        if found is not None:
            self.worse.append(found)

    def in_order(self) -> list[Worse]:
        """What has grown most first."""
        return sorted(
            self.worse, key=lambda one: (one.before_ps - one.now_ps, one.run, one.attempt)
        )

    @property
    def gone(self) -> int:
        return len(self.former) - self.compared


def compare(before: Former, facts: Facts, tolerance: float) -> Worse | None:
    """None where the run is not worse."""
    least_ps = tolerance * before.duration_ps
    comparable = BUCKETS_COMPARED if facts["estimated"] == before.estimated else ()
    grown: dict[str, int] = {
        bucket: facts["buckets_ps"][bucket] - before.buckets_ps.get(bucket, 0)
        for bucket in comparable
    }
    grown = {bucket: ps for bucket, ps in grown.items() if ps > least_ps}
    later, later_before = facts["later_epoch_ps"], before.later_epoch_ps
    if later is not None and later_before and later - later_before > tolerance * later_before:
        grown["later epochs"] = later - later_before
    longer = facts["duration_ps"] - before.duration_ps > least_ps
    if not before.duration_ps:  # nothing was known: nothing can have grown
        grown, longer = {}, False
    ranks = RANKS.get(before.status), RANKS.get(facts["status"])
    fell = ranks[0] is not None and ranks[1] is not None and ranks[1] > ranks[0]
    if not (grown or longer or fell):
        return None
    return Worse(
        facts["run"],
        facts["attempt"],
        before.status,
        facts["status"],
        before.duration_ps,
        facts["duration_ps"],
        dict(sorted(grown.items(), key=lambda item: -item[1])),
    )


def read(path: Path) -> dict[Identity, Former]:
    """The runs of a document (.json), of JSON lines (.jsonl), or of all of these in a folder, where
    a run in several of them is that of the last by name. Raises UsageError."""
    found: dict[Identity, Former] = {}
    for file in _files(path):
        found.update(_read_file(file))
    if not found:
        raise UsageError(f"the baseline {path} holds no run")
    return found


def _read_file(path: Path) -> dict[Identity, Former]:
    try:
        return {(entry["run"], entry["attempt"]): _former(entry) for entry in _entries(path)}
    except OSError as error:
        raise UsageError(f"cannot read the baseline {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is no result of stall-analyze (--json or --jsonl): {error!r}"
        ) from error


def _former(entry: ReportEntry) -> Former:
    return Former(
        entry["verdict"]["status"],
        entry["window"]["duration_ps"],
        entry["later_epochs"]["median_ps"],
        entry["estimate"] is not None,
        figures(entry)["buckets_ps"],
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in RESULTS)
    return [path]


def _entries(path: Path) -> Iterator[ReportEntry]:
    with path.open(encoding="utf-8") as file:
        if path.suffix == ".jsonl":
            yield from (json.loads(line) for line in file if line.strip())
        else:
            yield from json.load(file)["runs"]
