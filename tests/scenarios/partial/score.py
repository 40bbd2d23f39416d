"""Scores what the analyzer makes of cut logs, against what is known from the full ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from typing import Any, TypeAlias

from tests.scenarios.score import PS_PER_S

Json: TypeAlias = Mapping[str, Any]

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
    """What the analyzer answered: its estimate, or the exact ledger where there is none."""

    primary: str = "unknown"
    candidates: tuple[str, ...] = ()
    sentence: str = ""
    likely_s: Mapping[str, float] = field(default_factory=dict)
    ranges_s: Mapping[str, tuple[float, float]] = field(default_factory=dict)

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
    def covered(self) -> list[bool]:
        """Of each bucket that matters: does the truth lie in its interval?"""
        slack = TOLERANCE * self._whole
        ends = [(self._truth_s(b), *self.said.range_s(b)) for b in self._above(MATTERS)]
        return [low - slack <= truth <= high + slack for truth, low, high in ends]

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
    """Of all cases of one kind. All but the number are shares."""

    cases: int
    right: float
    right_or_candidate: float
    wrongly_probable: float
    misattributed_median: float
    misattributed_90th: float
    covered: float
    unknown: float


def summary(cases: Sequence[Case]) -> Summary:
    """Of at least one case."""
    wrong = sorted(case.misattributed for case in cases)
    return Summary(
        cases=len(cases),
        right=_share(case.right for case in cases),
        right_or_candidate=_share(case.right_or_candidate for case in cases),
        wrongly_probable=_share(case.wrongly_probable for case in cases),
        misattributed_median=median(wrong),
        misattributed_90th=wrong[ceil(0.9 * len(wrong)) - 1],
        covered=_share(covered for case in cases for covered in case.covered),
        unknown=_share(case.said.primary == "unknown" for case in cases),
    )


def _share(answers: Iterable[bool]) -> float:
    known = list(answers)
    return sum(known) / len(known) if known else 0.0


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


def table(summaries: Mapping[str, Summary]) -> str:
    """A line for each kind of cut."""
    lines = [f"{'':12}" + "".join(f"{title:>17}" for title in COLUMNS.values())]
    for kind, of_kind in summaries.items():
        values = [getattr(of_kind, field) for field in COLUMNS]
        cells = [f"{values[0]:>17}", *(f"{value:>17.1%}" for value in values[1:])]
        lines.append(f"{kind:12}" + "".join(cells))
    return "\n".join(lines)
