"""Works out from measured gains by how much the ends of predicted ranges have to be moved.

An end is only ever moved outward: of the few gains that were measured of one finding, a narrower
range would say more than they prove. A row of few gains leans on that of its family, and that on
the row of all.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median

import numpy as np

from stall_analyzer.diagnose.calibration import Calibration

FILE = Path(__file__).with_name("measured.csv")
ALL, FAMILY, OWN = 2, 3, 5  # letters of an id: "ST", "ST1", "ST104"
# The range lies between these shares of the measured gains.
LOW_SHARE, HIGH_SHARE = 0.1, 0.95
# A row counts its own gains, and the row above it as if it were so many.
LEANS = 5
# Fewer gains than this make no row.
LEAST = 5
# Two runs of one program differ by so much of the epoch, and more.
NOISE_SHARE = 0.03

Lookup = Callable[[str], Calibration]


@dataclass(frozen=True)
class Measured:
    """One program: what its finding promised without calibration, and what fixing it saved."""

    set: str
    program: str
    finding: str
    epoch_s: float
    low_s: float
    high_s: float
    most_s: float  # what the buckets took that the finding blames
    gain_s: float

    def range_s(self, own: Calibration) -> tuple[float, float]:
        """The range, as `calibrated` makes it."""
        high = min(self.high_s * own.high, self.most_s)
        return min(self.low_s * own.low, high), high

    def outside(self, own: Calibration) -> float:
        """The share of the epoch by which the gain is outside; positive above the range."""
        low, high = self.range_s(own)
        return (max(self.gain_s - high, 0) + min(self.gain_s - low, 0)) / self.epoch_s


def read(path: Path = FILE) -> list[Measured]:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [
        Measured(set, program, finding, *map(float, figures))
        for set, program, finding, *figures in rows
    ]


def write(measured: Iterable[Measured], path: Path = FILE) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([field.name for field in fields(Measured)])
        for one in measured:
            out.writerow([v if isinstance(v, str) else f"{v:.3f}" for v in astuple(one)])


# ---------------------------------------------------------------- the table


def fitted(measured: Sequence[Measured]) -> dict[str, Calibration]:
    """A row for all findings, for each family and for each finding of which enough was measured."""
    table: dict[str, Calibration] = {}
    for letters in (ALL, FAMILY, OWN):
        for key in sorted({one.finding[:letters] for one in measured}):
            mine = [one for one in measured if one.finding.startswith(key)]
            if len(mine) >= LEAST:
                table[key] = _row(mine, lookup(table)(key))
    return table


def _row(mine: Sequence[Measured], above: Calibration) -> Calibration:
    lows = [one.gain_s / one.low_s for one in mine if one.low_s > 0]
    highs = [one.gain_s / one.high_s for one in mine]
    low = min(float(np.quantile(lows, LOW_SHARE)), 1) if lows else above.low
    high = max(float(np.quantile(highs, HIGH_SHARE)), 1)
    return Calibration(
        _leaning(low, len(lows), above.low), _leaning(high, len(highs), above.high), len(mine)
    )


def _leaning(own: float, count: int, above: float) -> float:
    return round((own * count + above * LEANS) / (count + LEANS), 2)


def lookup(table: Mapping[str, Calibration]) -> Lookup:
    def of(id: str) -> Calibration:
        keys = (id[:letters] for letters in (OWN, FAMILY, ALL))
        return next((table[key] for key in keys if key in table), Calibration(1, 1, 0))

    return of


def untouched(_: str) -> Calibration:
    return Calibration(1, 1, 0)


# ---------------------------------------------------------------- how good it is


@dataclass(frozen=True)
class Quality:
    count: int
    inside: int  # outside by no more than NOISE_SHARE of the epoch
    inside_5: int  # by no more than 5%
    wide: float  # median of high / low, if there is a low end
    error: float  # median of |middle - gain| / gain

    def __str__(self) -> str:
        return (
            f"{self.inside} of {self.count} inside ({self.inside / self.count:.0%}), with 5% "
            f"noise {self.inside_5} ({self.inside_5 / self.count:.0%}); high/low {self.wide:.2f}, "
            f"error of the middle {self.error:.1%}"
        )


def quality(cases: Sequence[tuple[Measured, Calibration]]) -> Quality:
    off = [abs(one.outside(own)) for one, own in cases]
    ranges = [one.range_s(own) for one, own in cases]
    return Quality(
        len(cases),
        sum(share <= NOISE_SHARE for share in off),
        sum(share <= 0.05 for share in off),
        median(high / low if low else np.inf for low, high in ranges),
        median(
            abs(sum(ends) / 2 - one.gain_s) / abs(one.gain_s)
            for (one, _), ends in zip(cases, ranges, strict=True)
        ),
    )


def with_rows(measured: Iterable[Measured], of: Lookup) -> list[tuple[Measured, Calibration]]:
    return [(one, of(one.finding)) for one in measured]


def one_set_left_out(measured: Sequence[Measured]) -> dict[str, list[tuple[Measured, Calibration]]]:
    """Each set with the table that all the others give."""
    return {
        left: with_rows(
            [one for one in measured if one.set == left],
            lookup(fitted([one for one in measured if one.set != left])),
        )
        for left in sorted({one.set for one in measured})
    }
