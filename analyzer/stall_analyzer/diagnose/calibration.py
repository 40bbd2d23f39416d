"""Ranges as wide as the measured gains require, finding by finding.

A range comes from one traced epoch. But a gain is the difference between two runs, and even what no
change touches differs between them: tracing the same model took 0.7 to 1.5 times as long. Where a
cost goes away entirely, the cost is what to expect, not an upper limit. So it was measured how far
gains lie outside their ranges, and the ends are moved accordingly.

`tests/scenarios/gains/` computes the table from programs and their fixed versions, and measures how
good it is on programs that it was not made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stall_analyzer.model.findings import Finding, Gain
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.signals import Signals


@dataclass(frozen=True)
class Calibration:
    low: float  # times the low end
    high: float  # times the high end
    measured: int  # gains behind it


# Per finding; if too few of its gains were measured, per family; else for all findings.
TABLE: Mapping[str, Calibration] = {
    "ST": Calibration(1.0, 1.06, 101),
    "ST0": Calibration(1.0, 1.13, 38),
    "ST1": Calibration(1.0, 1.1, 34),
    "ST4": Calibration(1.0, 1.04, 22),
    "ST001": Calibration(1.0, 1.05, 9),
    "ST002": Calibration(1.0, 1.07, 10),
    "ST101": Calibration(0.87, 1.05, 5),
    "ST102": Calibration(1.0, 1.05, 5),
    "ST104": Calibration(1.0, 1.07, 9),
    "ST108": Calibration(1.0, 1.05, 5),
    "ST401": Calibration(1.0, 1.05, 11),
    "ST402": Calibration(1.0, 1.02, 5),
}


def calibration_of(id: str) -> Calibration:
    known = (TABLE[key] for key in (id, id[:3], id[:2]) if key in TABLE)
    return next(known, Calibration(1, 1, 0))


def calibrated(finding: Finding, signals: Signals) -> Finding:
    """The finding with the measured range, as far as the buckets that it blames have room."""
    own, gain = calibration_of(finding.id), finding.gain
    high = min(round(gain.high_ps * own.high), room_ps(finding, signals))
    # What is saved beyond the cost is other work, which then runs faster.
    in_own_bucket = min(high, signals.likely_ledger.buckets_ps[finding.bucket])
    return replace(
        finding,
        lost_ps=max(finding.lost_ps, in_own_bucket),
        gain=Gain(min(round(gain.low_ps * own.low), high), high),
    )


def room_ps(finding: Finding, signals: Signals) -> int:
    """The most that a change can save: all the time in the buckets that it blames."""
    spent = signals.likely_ledger.buckets_ps
    return max(finding.gain.high_ps, sum(spent[bucket] for bucket in finding.blames))
