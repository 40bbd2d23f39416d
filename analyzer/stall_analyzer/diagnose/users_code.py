"""The lines of the user's own code that a finding is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from stall_analyzer.detectors.cluster import straggler
from stall_analyzer.model.code_lines import CodeLine
from stall_analyzer.model.findings import Finding
from stall_analyzer.signals.cluster.late_lines import late_lines
from stall_analyzer.signals.cluster.remote_waits import late_remote_worker
from stall_analyzer.signals.signals import Signals

MOST_LINES = 3
LEAST_SHARE = 0.05  # of what the finding costs


def with_lines(finding: Finding, signals: Signals) -> Finding:
    if finding.severity == "note" or not finding.lost_ps:
        return finding
    if finding.id == straggler.ID:
        return replace(finding, lines=_of_late_hosts(signals))
    mine = [line for line in signals.code_lines if _is_about(finding, line, signals)]
    return replace(finding, lines=_costliest(mine, finding.lost_ps, MOST_LINES))


def _of_late_hosts(signals: Signals) -> tuple[CodeLine, ...]:
    """Each of them has its own reason."""
    late = signals.stragglers
    if not late:
        server = late_remote_worker(signals)
        return _costliest(server.lines, server.cost_ps, MOST_LINES) if server is not None else ()
    most = max(MOST_LINES // max(len(late), 1), 1)
    each = (_costliest(late_lines(host, signals), host.reason.ps, most) for host in late)
    return tuple(chain.from_iterable(each))


def _costliest(lines: Sequence[CodeLine], lost_ps: int, most: int) -> tuple[CodeLine, ...]:
    return tuple(line for line in lines if line.ps >= LEAST_SHARE * lost_ps)[:most]


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
