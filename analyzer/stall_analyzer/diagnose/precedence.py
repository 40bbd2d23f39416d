"""Findings that repeat another one that names the reason, or that contradict it.

Only what the other finding alone decides belongs here. A rule that also looks at the run stays in
its detector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from stall_analyzer.model.findings import Finding
from stall_analyzer.model.kinds import Severity

SILENCED_BY = {
    "ST010": ("ST001", "ST002"),  # input takes cores: its Python takes them, and the interpreter
    "ST020": ("ST005",),  # what the console says about filling: the trace has its cost
    "ST501": ("ST512", "ST513"),  # waits for others: it is about devices of this host
    "ST113": ("ST104",),  # … about retracing
    "ST315": ("ST301",),  # … about the loss: it was logged
    "ST302": ("ST303",),  # the loss explodes: the learning rate is too high
    "ST305": ("ST303", "ST304"),  # no progress: the learning rate is too high, or too low
    "ST306": ("ST302", "ST303"),  # the loss oscillates: it explodes, or the rate is too high
}
# The machine is exhausted: advice that needs more of it cannot be followed.
LIMITS = frozenset({"ST201", "ST202", "ST203", "ST207", "ST208", "ST211", "ST410"})
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # most severe first


def without_silenced(findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """Those that no other one explains, by id."""
    return {
        id: finding
        for id, finding in findings.items()
        if findings.keys().isdisjoint(SILENCED_BY.get(id, ()))
    }


def without_opposed(findings: Sequence[Finding]) -> list[Finding]:
    """Without those that turn a knob in another direction than a more urgent one; in order."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=_most_urgent_first):
        if not any(_opposed(finding, other) for other in kept):
            kept.append(finding)
    return [finding for finding in findings if finding in kept]


def _opposed(one: Finding, other: Finding) -> bool:
    turned = {turn.knob: turn.to for turn in one.change.turns}
    return any(turned.get(turn.knob, turn.to) != turn.to for turn in other.change.turns)


def _most_urgent_first(finding: Finding) -> tuple[bool, bool, int, bool, int]:
    """Limits first; then the most severe, and learning before time."""
    loudness, learns = SEVERITIES.index(finding.severity), finding.bucket != "numerics"
    return not finding.fatal, finding.id not in LIMITS, loudness, learns, -finding.lost_ps
