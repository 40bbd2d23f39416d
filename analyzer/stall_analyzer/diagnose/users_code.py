"""The lines of the user's own code that a finding is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stall_analyzer.model.code_lines import CodeLine
from stall_analyzer.model.findings import Finding
from stall_analyzer.signals.signals import Signals

MOST_LINES = 3
LEAST_SHARE = 0.05  # of what the finding costs


def with_lines(finding: Finding, signals: Signals) -> Finding:
    if finding.severity == "note" or not finding.lost_ps:
        return finding
    mine = [line for line in signals.code_lines if _is_about(finding, line, signals)]
    costly = [line for line in mine if line.ps >= LEAST_SHARE * finding.lost_ps]
    return replace(finding, lines=tuple(costly[:MOST_LINES]))


def _is_about(finding: Finding, line: CodeLine, signals: Signals) -> bool:
    """Input is waited for in one place and produced in another, whatever makes it late. For other
    buckets, the evidence tells the cause."""
    if line.bucket not in (finding.blames or (finding.bucket,)):
        return False
    return line.bucket == "input" or line.cause in _causes(finding, signals)


def _causes(finding: Finding, signals: Signals) -> set[str]:
    """The causes during the stretches that prove the finding."""
    mine = [e for e in finding.evidence if e.host == signals.host.host]
    start = np.array([e.start_ps for e in mine], dtype=np.int64)
    end = np.array([e.end_ps for e in mine], dtype=np.int64)
    return {c for c in signals.causes_ps if signals.time_of(start, end, c).sum() > 0}
