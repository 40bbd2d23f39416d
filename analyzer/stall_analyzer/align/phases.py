"""The parts of the epoch: as a capture marked them, from the steps, or from an ordinary log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from stall_analyzer.align.logged_epoch import LoggedEpoch
from stall_analyzer.model.kinds import PhaseName
from stall_analyzer.model.timeline import FirstStep, Phase, Step, Window
from stall_analyzer.model.units import PS_PER_NS

# A trace that ends this late shows how the epoch ends.
TO_THE_END = 0.95


def find_phases(
    steps: Sequence[Step],
    window: Window,
    logged: LoggedEpoch | None,
    first_step: FirstStep | None,
    traced_until_ps: int,
) -> tuple[Phase, ...]:
    """Phases that tile the window."""
    if logged is not None and logged.marked:
        return _from_marks(steps, window, logged)
    # Do traced steps show the whole epoch, or are they the few that were profiled?
    traced = sum(step.end_ps - step.start_ps for step in steps if step.source != "events")
    to_the_end = traced_until_ps > TO_THE_END * window.duration_ps
    if to_the_end and traced > window.duration_ps // 4:
        return _from_steps(steps, window.duration_ps)
    return _from_log(window, logged, first_step)


def _from_log(
    window: Window, logged: LoggedEpoch | None, first_step: FirstStep | None
) -> tuple[Phase, ...]:
    """What an ordinary log tells: the end of the first step, and the first validation."""
    zero_ns, duration = window.start_unix_ns or 0, window.duration_ps
    bounds: list[tuple[PhaseName, int, int]] = []
    if first_step is not None and first_step.exact:
        bounds.append(("first_step", first_step.end_ps, 0))
    if logged is not None and logged.validation_begin_ns is not None and logged.validation_end_ns:
        bounds.append(("training", *_between(logged, zero_ns, first_step)))
        bounds.append(("validation", (logged.validation_end_ns - zero_ns) * PS_PER_NS, 0))
        bounds.append(("epoch_end", duration, 0))
    else:
        bounds.append(("training", duration, 0))
    phases: list[Phase] = []
    at = 0
    for name, bound, error in bounds:
        until = min(bound, duration)
        if until > at:
            phases.append(Phase(name, at, until, error))
            at = until
    return tuple(phases)


def _between(logged: LoggedEpoch, zero_ns: int, first_step: FirstStep | None) -> tuple[int, int]:
    """When validation took over from training, after the first step, and how far off that may
    be."""
    assert logged.validation_begin_ns is not None
    middle = (logged.validation_begin_ns - zero_ns) * PS_PER_NS
    error = logged.validation_begin_error_ns * PS_PER_NS
    latest = middle + error
    earliest = max(middle - error, min(first_step.end_ps if first_step else 0, latest))
    return (earliest + latest) // 2, (latest - earliest) // 2


def _from_marks(steps: Sequence[Step], window: Window, logged: LoggedEpoch) -> tuple[Phase, ...]:
    zero_ns = window.start_unix_ns or 0
    marks: tuple[tuple[PhaseName, int | None], ...] = (
        ("training", logged.validation_begin_ns or logged.training_end_ns),
        ("validation", logged.validation_end_ns),
    )
    begin = steps[0].start_ps if steps else 0
    bounds: list[tuple[PhaseName, int]] = [("startup", begin)]
    bounds += [(name, (ns - zero_ns) * PS_PER_NS) for name, ns in marks if ns is not None]
    # What comes last is the epoch's end, unless the epoch never got there.
    ended = logged.validation_end_ns or (logged.training_end_ns and not logged.validation_begin_ns)
    under_way: PhaseName = "validation" if logged.validation_begin_ns else "training"
    bounds.append(("epoch_end" if ended else under_way, window.duration_ps))
    phases: list[Phase] = []
    at = 0
    for name, bound in bounds:
        until = min(bound, window.duration_ps)
        if until > at:
            phases.append(Phase(name, at, until))
            at = until
    return tuple(phases)


def _from_steps(steps: Sequence[Step], duration_ps: int) -> tuple[Phase, ...]:
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
        # Time between training and validation prepares the validation.
        end = members[-1].end_ps
        phases.append(Phase(name, at, end))
        at = end
    if at < duration_ps:
        phases.append(Phase("epoch_end", at, duration_ps))
    return tuple(phases)
