"""Scores what the analyzer makes of cut logs, against what is known from the full ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from typing import Any, Literal, TypeAlias

from tests.scenarios.partial.split import Half
from tests.scenarios.score import PS_PER_S

Json: TypeAlias = Mapping[str, Any]
Place: TypeAlias = Literal["below", "inside", "above"]

MATTERS = 0.01  # of the epoch: buckets below it are not asked for their interval
TOLERANCE = 0.005  # of the epoch: the truth and the window themselves are no better than that
SHOWN = 0.02  # of the epoch, for the line of a case
MOST_CANDIDATES = 3  # a longer list says nothing


@dataclass(frozen=True)
class Truth:
    primary: str
    buckets_s: Mapping[str, float]
    epoch_s: float


@dataclass(frozen=True)
class Said:
    """What the analyzer answered: its estimate, or the exact ledger if there is none."""

    primary: str = "unknown"
    candidates: tuple[str, ...] = ()
    sentence: str = ""
    likely_s: Mapping[str, float] = field(default_factory=dict)
    ranges_s: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()  # of its page with itself

    def range_s(self, bucket: str) -> tuple[float, float]:
        """A value without a range claims to be exact."""
        value = self.value_s(bucket)
        return self.ranges_s.get(bucket, (value, value))

    def value_s(self, bucket: str) -> float:
        return self.likely_s.get(bucket, 0.0)


def said_in(run: Json) -> Said:
    """From one run of the analyzer's document."""
    verdict, figures = run["verdict"], run.get("estimate") or run
    return Said(
        primary=verdict["primary"],
        candidates=tuple(verdict.get("candidates") or ()),
        sentence=verdict["sentence"],
        likely_s={bucket: ps / PS_PER_S for bucket, ps in figures["buckets_ps"].items()},
        ranges_s={
            bucket: (ends["low"] / PS_PER_S, ends["high"] / PS_PER_S)
            for bucket, ends in (figures.get("ranges_ps") or {}).items()
        },
    )


@dataclass(frozen=True)
class Case:
    """One program, cut down in one way."""

    name: str
    half: Half
    kind: str
    truth: Truth
    said: Said

    @property
    def right(self) -> bool:
        return self.said.primary == self.truth.primary

    @property
    def right_or_candidate(self) -> bool:
        listed = self.said.candidates
        return self.right or (len(listed) <= MOST_CANDIDATES and self.truth.primary in listed)

    @property
    def wrongly_probable(self) -> bool:
        return self.said.sentence.startswith("Probably") and not self.right

    @property
    def misattributed(self) -> float:
        """Share of the epoch, as `tests.scenarios.score` has it; all of it without an answer."""
        if not any(self.said.likely_s.values()):
            return 1.0
        buckets = {*self.truth.buckets_s, *self.said.likely_s}
        return sum(abs(self._truth_s(b) - self.said.value_s(b)) for b in buckets) / 2 / self._whole

    @property
    def places(self) -> dict[str, Place]:
        """For each bucket that matters, where the truth is relative to its interval."""
        return {bucket: self._place(bucket) for bucket in self._above(MATTERS)}

    def _place(self, bucket: str) -> Place:
        (low, high), slack = self.said.range_s(bucket), TOLERANCE * self._whole
        truth = self._truth_s(bucket)
        return "below" if truth < low - slack else "above" if truth > high + slack else "inside"

    def line(self) -> str:
        mark = " " if self.right else "?" if self.right_or_candidate else "!"
        listed = f" ({', '.join(self.said.candidates)})" if self.said.candidates else ""
        said = f"{self.said.primary}{listed}"
        pairs = ", ".join(map(self._pair, self._above(SHOWN)))
        return (
            f"{mark} {self.name:40} {self.truth.primary:13} {said:13} "
            f"{self.misattributed:6.1%}  {pairs}"
        )

    def _pair(self, bucket: str) -> str:
        low, high = self.said.range_s(bucket)
        value = self.said.value_s(bucket)
        return f"{bucket} {self._truth_s(bucket):.3f}/{value:.3f}[{low:.3f}–{high:.3f}]"

    def _above(self, share: float) -> list[str]:
        """Buckets that cost more than this in truth or as we say. `unknown` has no truth."""
        names = sorted({*self.truth.buckets_s, *self.said.likely_s} - {"unknown"})
        least = share * self._whole
        return [b for b in names if max(self._truth_s(b), self.said.value_s(b)) > least]

    def _truth_s(self, bucket: str) -> float:
        return self.truth.buckets_s.get(bucket, 0.0)

    @property
    def _whole(self) -> float:
        return self.truth.epoch_s


@dataclass(frozen=True)
class Summary:
    """For all cases of one kind. All except the number are shares."""

    cases: int
    right: float
    right_or_candidate: float
    wrongly_probable: float
    misattributed_median: float
    misattributed_90th: float
    covered: float
    unknown: float


def summary(cases: Sequence[Case]) -> Summary:
    """For at least one case."""
    wrong = sorted(case.misattributed for case in cases)
    return Summary(
        cases=len(cases),
        right=_share(case.right for case in cases),
        right_or_candidate=_share(case.right_or_candidate for case in cases),
        wrongly_probable=_share(case.wrongly_probable for case in cases),
        misattributed_median=median(wrong),
        misattributed_90th=wrong[ceil(0.9 * len(wrong)) - 1],
        covered=_share(p == "inside" for case in cases for p in case.places.values()),
        unknown=_share(case.said.primary == "unknown" for case in cases),
    )


def _share(answers: Iterable[bool]) -> float:
    known = list(answers)
    return sum(known) / len(known) if known else 0.0


@dataclass(frozen=True)
class Target:
    kind: str
    field: str  # of the summary
    at_least: float = 0.0
    at_most: float = 1.0

    def missed(self, summaries: Mapping[str, Summary]) -> str:
        """What it is instead; nothing where the target is met."""
        value = getattr(summaries[self.kind], self.field)
        if self.at_least <= value <= self.at_most:
            return ""
        what = COLUMNS[self.field]
        return f"{self.kind}: {what} {value:.1%}, not {self.at_least:.0%} to {self.at_most:.0%}"


TARGETS = (
    Target("one_batch", "right", at_least=0.88),
    Target("one_batch", "misattributed_median", at_most=0.05),
    Target("one_batch", "misattributed_90th", at_most=0.15),
    # Wider intervals would contain the truth more often, and say less.
    Target("one_batch", "covered", at_least=0.85, at_most=0.95),
    Target("one_batch", "unknown", at_most=0.05),
    Target("events_only", "right_or_candidate", at_least=0.90),
    Target("events_only", "wrongly_probable", at_most=0.05),
)


def missed_targets(summaries: Mapping[str, Summary]) -> list[str]:
    missed = [missed for target in TARGETS if (missed := target.missed(summaries))]
    one, ten = summaries["one_batch"], summaries["ten_batches"]
    if ten.right < one.right or ten.misattributed_median > one.misattributed_median:
        missed.append("ten_batches: worse than one_batch")
    return missed


COLUMNS = {
    "cases": "cases",
    "right": "right",
    "right_or_candidate": "or listed",
    "wrongly_probable": "wrong Probably",
    "misattributed_median": "misattr. median",
    "misattributed_90th": "misattr. 90th",
    "covered": "in interval",
    "unknown": "unknown",
}


def rows(summaries: Mapping[str, Summary]) -> list[list[str]]:
    """A title, then a row for each kind of cut."""
    table = [["", *COLUMNS.values()]]
    for kind, of_kind in summaries.items():
        count, *shares = (getattr(of_kind, field) for field in COLUMNS)
        table.append([kind, str(count), *(f"{share:.1%}" for share in shares)])
    return table


def places_by_bucket(cases: Iterable[Case]) -> dict[str, Counter[Place]]:
    """How often the truth of each bucket lay below, inside and above of its interval."""
    result: dict[str, Counter[Place]] = {}
    for bucket, place in (pair for case in cases for pair in case.places.items()):
        result.setdefault(bucket, Counter())[place] += 1
    return result
