"""Where the first epoch begins and ends: as a capture marked it, as logged, or as traces show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from stall_analyzer.align.logged_epoch import LONGEST_NS, LOOP_END, LoggedEpoch
from stall_analyzer.align.placed_trace import PlacedTrace
from stall_analyzer.model.notes import Note
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS

# A trace that begins this soon after the epoch shows its beginning: the beginning according to the
# event files is 2 to 10 ms early.
BEGIN_TOLERANCE_PS = 50 * PS_PER_MS
LATE_PROFILE = Note("warning", "The profile was taken after the first epoch.")


def find_window(
    placed: Sequence[PlacedTrace],
    reference: PlacedTrace | None,
    logged: LoggedEpoch | None,
    clock_ns: int | None,
    notes: list[Note],
) -> Window:
    """`reference` is the trace that shows the epoch best."""
    from_log = None
    if logged is not None and clock_ns is not None:
        from_log = _from_log(logged, clock_ns)
        if not logged.finished and logged.end_source != LOOP_END:
            notes.append(Note("warning", "The event files show no finished epoch."))
    if from_log is not None and logged is not None and logged.marked:
        window = from_log
        if reference is not None and reference.on_clock(0) >= from_log.end_ps:
            notes.append(LATE_PROFILE)
    elif reference is None:
        window = from_log or _without_epoch(placed, notes)
    elif from_log is not None and (
        reference.origin_ps is None or reference.clock.source == "session name"
    ):
        window = from_log
    else:
        more_logged = logged is not None and bool(logged.later_ns)
        error_ps = logged.start_error_ns * PS_PER_NS if logged is not None else 0
        window = _from_trace(reference, placed, from_log, more_logged, error_ps, notes)
    # In a damaged trace, steps may be inside the creation of their iterator: an empty window.
    return replace(window, end_ps=max(window.start_ps, window.end_ps), clock_unix_ns=clock_ns)


def later_epochs_ps(
    reference: PlacedTrace | None, logged: LoggedEpoch | None, window: Window
) -> tuple[int, ...]:
    """From the log, or else the trace, in which a callback that evaluates looks like a new
    epoch."""
    if logged is not None and logged.later_ns:
        return tuple(gap * PS_PER_NS for gap in logged.later_ns)
    if reference is None:
        return ()
    same = takewhile(lambda epoch: not epoch.compiled_anew, reference.epochs[1:])
    ended = ((e.start_ps, e.end_ps) for e in same if e.end_ps is not None)
    later = [(start, end) for start, end in ended if reference.on_clock(end) > window.end_ps]
    # In a damaged trace, an epoch may end before its iterator is created.
    return tuple(end - start for start, end in later if end > start)


def _from_log(logged: LoggedEpoch, clock_ns: int) -> Window:
    start, end = ((ns - clock_ns) * PS_PER_NS for ns in (logged.start_ns, logged.end_ns))
    return Window(start, end, logged.start_source, logged.end_source)


def _from_trace(
    reference: PlacedTrace,
    placed: Sequence[PlacedTrace],
    from_log: Window | None,
    more_logged: bool,
    logged_error_ps: int,
    notes: list[Note],
) -> Window:
    if from_log is not None and reference.on_clock(reference.extent_ps[0]) >= from_log.end_ps:
        notes.append(LATE_PROFILE)
        return from_log
    start, start_source = _start(reference, from_log, logged_error_ps, notes)
    epoch = reference.epochs[0]
    end = None if epoch.end_ps is None else reference.on_clock(epoch.end_ps)
    if from_log is not None and from_log.end_ps > start:
        # Callbacks may continue after the scalars were written. But if only one epoch was logged,
        # what begins next in the trace is another fit().
        goes_on = more_logged and epoch.end_exact and end is not None and end > from_log.end_ps
        if not goes_on and not _saw_loop_end(reference, from_log):
            return Window(start, from_log.end_ps, start_source, from_log.end_source)
    if end is not None:
        return Window(start, end, start_source, epoch.end_source)
    last = max(p.on_clock(p.last_work_ps) for p in _together_with(reference, placed))
    if from_log is not None and from_log.end_ps > last:
        return Window(start, from_log.end_ps, start_source, from_log.end_source)
    return Window(start, last, start_source, "last step in the trace")


def _saw_loop_end(reference: PlacedTrace, from_log: Window) -> bool:
    """A loop that logs no epochs only has a last record; a trace of that time shows its epochs.
    After the last record, the loop may still delete its iterator.
    """
    traced_until = reference.on_clock(reference.extent_ps[1])
    return from_log.end_source == LOOP_END and traced_until >= from_log.end_ps


def _start(
    reference: PlacedTrace, from_log: Window | None, error_ps: int, notes: list[Note]
) -> tuple[int, str]:
    """`error_ps`: how far off the logged beginning may be."""
    epoch, begin = reference.epochs[0], reference.on_clock(reference.extent_ps[0])
    late = from_log is not None and begin > from_log.start_ps + BEGIN_TOLERANCE_PS + error_ps
    if late:
        notes.append(Note("warning", "The profile began after the start of the first epoch."))
    if from_log is not None and (late or not epoch.begin_seen):
        return from_log.start_ps, from_log.start_source
    if epoch.begin_seen:
        return reference.on_clock(epoch.start_ps), epoch.start_source
    notes.append(
        Note(
            "warning",
            "The trace begins in the middle of an epoch: it does not show what came before.",
        )
    )
    return begin, "the trace begins"


def _together_with(reference: PlacedTrace, placed: Sequence[PlacedTrace]) -> list[PlacedTrace]:
    """Traces of the same time that show the same epoch, including the reference."""

    def begins_before_end(one: PlacedTrace, other: PlacedTrace) -> bool:
        return one.on_clock(one.epochs[0].start_ps) < other.on_clock(other.last_work_ps)

    others = [p for p in placed if p.host != reference.host and p.epochs]
    return [reference] + [
        p
        for p in others
        if p.origin_ps is not None and reference.origin_ps is not None
        if begins_before_end(p, reference) and begins_before_end(reference, p)
    ]


def _without_epoch(placed: Sequence[PlacedTrace], notes: list[Note]) -> Window:
    """The steps that a device shows or, without those, everything that was traced."""
    if not placed:
        return Window(0, 0, "nothing was recorded", "nothing was recorded", epoch=None)
    for p in placed:
        if p.steps is not None and len(p.steps.start_ps):
            notes.append(
                Note(
                    "info", "No training thread was found, so the window spans the device's steps."
                )
            )
            start = p.on_clock(int(p.steps.start_ps.min()))
            end = p.on_clock(int(p.steps.end_ps.max()))
            return Window(start, end, "first step", "last step of the device", epoch=None)
    notes.append(
        Note(
            "warning", "No training step was found, so the window is the whole trace, not an epoch."
        )
    )
    start = min(p.on_clock(p.extent_ps[0]) for p in placed)
    # A trace from another month, by a damaged clock, is not part of the window.
    latest = start + LONGEST_NS * PS_PER_NS
    end = min(max(p.on_clock(p.extent_ps[1]) for p in placed), latest)
    return Window(start, end, "the trace begins", "the trace ends", epoch=None)
