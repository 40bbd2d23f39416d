"""The lines of the user's own code that made a host late."""

from __future__ import annotations

from stall_analyzer.model.code_lines import CodeLine
from stall_analyzer.model.findings import LateHost
from stall_analyzer.signals.signals import Signals


def late_lines(late: LateHost, signals: Signals) -> tuple[CodeLine, ...]:
    """Costliest first. A host that computes for longer than the others has none."""
    reason = late.reason
    return tuple(
        line
        for line in signals.on(late.host).code_lines
        # Input is waited for in one place and produced in another.
        if line.cause == reason.cause or line.bucket == reason.bucket == "input"
    )
