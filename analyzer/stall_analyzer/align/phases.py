"""Startup, training, validation and the end of the epoch, from the steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from stall_analyzer.model.timeline import Phase, Step


def phases_of(steps: Sequence[Step], duration_ps: int) -> tuple[Phase, ...]:
    """Phases that tile the window."""
    if not steps:
        return (Phase("training", 0, duration_ps),) if duration_ps else ()
    phases: list[Phase] = []
    at = 0
    for name, group in groupby(steps, key=lambda step: step.phase):
        members = list(group)
        begin = members[0].start_ps
        if not phases and begin > at:
            phases.append(Phase("startup", at, begin))
            at = begin
        # What lies between training and validation prepares the validation.
        end = members[-1].end_ps
        phases.append(Phase(name, at, end))
        at = end
    if at < duration_ps:
        phases.append(Phase("epoch_end", at, duration_ps))
    return tuple(phases)
