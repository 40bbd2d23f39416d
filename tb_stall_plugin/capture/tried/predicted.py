"""What the analyzer predicts that a change saves in the steps that are tried."""

from __future__ import annotations

from dataclasses import dataclass

from stall_analyzer.api import Finding, analyze
from stall_analyzer.model.units import PS_PER_S


@dataclass(frozen=True)
class Prediction:
    low_ps: int
    high_ps: int


def predicted(logdir: str, finding: str, share: float) -> Prediction | None:
    """The prediction from a capture, scaled to the share of its steps that is tried. None if the
    capture does not show that finding."""
    found = [f for run in analyze(logdir) for f in run.findings if f.id == finding]
    if not found:
        return None
    low_s, high_s = _range_s(found[0])
    return Prediction(round(low_s * share * PS_PER_S), round(high_s * share * PS_PER_S))


def _range_s(finding: Finding) -> tuple[float, float]:
    """A finding about the user's own measuring says what that costs, not what a change saves."""
    return finding.gain_s if finding.gain_s[1] else (0.0, finding.lost_s)
