"""Findings that would say the same as another one, which names the reason.

Only what the other finding alone decides is here. A rule that looks at the run as well stays in its
detector.
"""

from __future__ import annotations

from collections.abc import Mapping

from stall_analyzer.model.findings import Finding

SILENCED_BY = {
    "ST020": ("ST005",),  # what the console says about filling: the trace has its cost
    "ST113": ("ST104",),  # … about retracing
    "ST315": ("ST301",),  # … about the loss: it was logged
    "ST302": ("ST303",),  # the loss explodes: the learning rate is too high
    "ST305": ("ST303", "ST304"),  # no progress: the learning rate is too high, or too low
    "ST306": ("ST302", "ST303"),  # the loss oscillates: it explodes, or the rate is too high
}


def without_silenced(findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """Those that no other of them explains, by id."""
    return {
        id: finding
        for id, finding in findings.items()
        if findings.keys().isdisjoint(SILENCED_BY.get(id, ()))
    }
