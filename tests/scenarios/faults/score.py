"""Judges the analyzer's answers on faulty programs and on their fixed forms.

Works on JSON documents alone, so that it can be tested without training anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

PS_PER_S = 1e12
# Two runs of one program differ: seven of the same took 2.3 to 3.0 s on a shared machine, which is
# a standard deviation of 8%. A gain outside its range by less than this share proves nothing.
NOISE_SHARE = 0.03


@dataclass(frozen=True)
class Expected:
    """What a fault's table says of it.

    A healthy program whose bucket is not "compute" is healthy in that respect alone: a tiny model
    that learns well still spends its first epoch on compiling.
    """

    name: str
    group: str
    finding: str | None
    bucket: str
    healthy: bool = False

    @property
    def made_for(self) -> str:
        return f"not {self.bucket}" if self._healthy_in_one_respect else self.bucket

    def allows(self, primary: str) -> bool:
        return (primary != self.bucket) if self._healthy_in_one_respect else primary == self.bucket

    def forbids(self, finding: Json) -> bool:
        """Whether a finding to act on has no business in this program."""
        if self._healthy_in_one_respect:
            return bool(finding["bucket"] == self.bucket)
        return bool(finding["id"] != self.finding)

    @property
    def _healthy_in_one_respect(self) -> bool:
        return self.healthy and self.bucket != "compute"


@dataclass(frozen=True)
class Judgment:
    """What was answered to one fault. Without a `problem`, `primary` is the verdict's bucket."""

    expected: Expected
    primary: str = "none"
    found: bool = False
    other_acts: tuple[str, ...] = ()  # findings "act" on the faulty form that it was not made for
    fixed_acts: tuple[str, ...] = ()  # findings "act" on the fixed form
    predicted_s: tuple[float, float] | None = None  # None: no seconds were promised
    measured_s: float | None = None  # None: there is nothing to compare with
    epoch_s: float = 0.0  # of the faulty form
    problem: str = ""
    contradictions: tuple[str, ...] = ()  # of the pages of both forms with themselves

    @property
    def primary_right(self) -> bool:
        return not self.problem and self.expected.allows(self.primary)

    @property
    def outside_s(self) -> float | None:
        """How far the measured gain is outside of the predicted range."""
        if self.predicted_s is None or self.measured_s is None:
            return None
        low, high = self.predicted_s
        return max(low - self.measured_s, self.measured_s - high, 0.0)

    @property
    def in_range(self) -> bool | None:
        """Inside, or no further outside than noise may be."""
        outside_s = self.outside_s
        return None if outside_s is None else outside_s <= NOISE_SHARE * self.epoch_s

    @property
    def relative_error(self) -> float | None:
        """The error of the middle of the prediction; infinite if nothing was saved at all."""
        if self.predicted_s is None or self.measured_s is None:
            return None
        middle = sum(self.predicted_s) / 2
        return abs(middle - self.measured_s) / self.measured_s if self.measured_s > 0 else inf


def judge(expected: Expected, faulty: Json, fixed: Json | None) -> Judgment:
    """One fault; `faulty` and `fixed` are runs of the analyzer's JSON document."""
    mine = [f for f in faulty["findings"] if f["id"] == expected.finding]
    promised = (mine[0]["gain_ps"]["low"], mine[0]["gain_ps"]["high"]) if mine else (0, 0)
    low, high = (ps / PS_PER_S for ps in promised)
    return Judgment(
        expected,
        primary=faulty["verdict"]["primary"],
        found=bool(mine),
        other_acts=tuple(f["id"] for f in acts(faulty) if expected.forbids(f)),
        fixed_acts=tuple(f["id"] for f in acts(fixed)) if fixed else (),
        predicted_s=(low, high) if high else None,
        measured_s=_epoch_s(faulty) - _epoch_s(fixed) if fixed else None,
        epoch_s=_epoch_s(faulty),
    )


def _epoch_s(run: Json) -> float:
    return float(run["window"]["duration_ps"] / PS_PER_S)


def acts(run: Json) -> list[Json]:
    return [finding for finding in run["findings"] if finding["severity"] == "act"]


# ---------------------------------------------------------------- all of them


@dataclass(frozen=True)
class Target:
    what: str
    value: float | None  # None: nothing to measure it on
    limit: float
    at_least: bool  # otherwise at most
    count: int  # on how many programs it was measured

    @property
    def met(self) -> bool:
        if self.value is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def targets(judgments: Sequence[Judgment]) -> tuple[Target, ...]:
    wanted = [j for j in judgments if j.expected.finding]
    healthy = [j for j in judgments if j.expected.healthy]
    ranges = [j.in_range for j in judgments if j.in_range is not None]
    errors = [j.relative_error for j in judgments if j.relative_error is not None]
    false_acts = sum(len(j.other_acts) for j in healthy)
    return (
        Target("primary bucket right", _share([j.primary_right for j in judgments]), 0.97, True,
               len(judgments)),
        Target("faults found", _share([j.found for j in wanted]), 0.95, True, len(wanted)),
        Target("findings to act on in healthy programs", false_acts, 0, False, len(healthy)),
        Target("measured gain inside the predicted range", _share(ranges), 0.90, True,
               len(ranges)),
        Target("median error of the predicted gain", median(errors) if errors else None, 0.15,
               False, len(errors)),
    )  # fmt: skip


def passed(judgments: Sequence[Judgment]) -> bool:
    complete = not any(j.problem or j.contradictions for j in judgments)
    return complete and all(target.met for target in targets(judgments))


def confusion(judgments: Sequence[Judgment]) -> dict[str, Counter[str]]:
    """Per expected bucket, how often each bucket was called the primary one."""
    matrix: dict[str, Counter[str]] = {}
    for judgment in judgments:
        matrix.setdefault(judgment.expected.made_for, Counter())[judgment.primary] += 1
    return matrix


@dataclass(frozen=True)
class Reliability:
    """Of one finding. `elsewhere`: told to act on it in a program not made for it.

    Some of those are right, since short programs all trace: the precision is a lower bound.
    """

    expected: int
    found: int
    elsewhere: int

    @property
    def recall(self) -> float | None:
        return self.found / self.expected if self.expected else None

    @property
    def precision(self) -> float | None:
        said = self.found + self.elsewhere
        return self.found / said if said else None


def reliabilities(judgments: Sequence[Judgment]) -> dict[str, Reliability]:
    expected = Counter(j.expected.finding for j in judgments if j.expected.finding)
    found = Counter(j.expected.finding for j in judgments if j.found)
    elsewhere = Counter(name for j in judgments for name in (*j.other_acts, *j.fixed_acts))
    return {
        name: Reliability(expected[name], found[name], elsewhere[name])
        for name in sorted({*expected, *elsewhere} - {None})
    }


def _share(answers: Sequence[bool | None]) -> float | None:
    return sum(map(bool, answers)) / len(answers) if answers else None
