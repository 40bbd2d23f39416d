"""Put traces and event files on one clock, and find the first epoch in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stall_analyzer.align.collectives import meetings_of
from stall_analyzer.align.host_clocks import BY_NAME, clock_notes, place_hosts
from stall_analyzer.align.iterations import Iterations
from stall_analyzer.align.logged_epoch import LoggedEpoch, epoch_from_events
from stall_analyzer.align.phases import phases_of
from stall_analyzer.align.placed_trace import Placed, look_at
from stall_analyzer.align.split_sessions import split_session_notes
from stall_analyzer.align.steps import TracedPart, find_steps, marked_phases
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.timeline import AlignedTrace, Phase, Step, Timeline, TracedSteps, Window
from stall_analyzer.model.trace import TraceSource
from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS

# A trace that begins this soon after the epoch has seen its beginning: the event files' own idea
# of the beginning is early by 2 to 10 ms.
BEGIN_TOLERANCE_PS = 50 * PS_PER_MS
LATE_PROFILE = "The profile was taken after the first epoch."


@dataclass(frozen=True)
class _Bounds:
    """The window on the common clock."""

    start_ps: int
    end_ps: int
    start_source: str
    end_source: str


def align(
    traces: Iterable[tuple[ProfileSession, TraceSource]],
    events: EventLog | None,
    logging_host: str = "",
) -> Timeline:
    """The first epoch's window, its steps and phases, and each trace's place in it.

    `logging_host` wrote the event files: its clock is theirs.
    """
    notes: list[Note] = []
    logged = epoch_from_events(events)
    seen = [look_at(session, source, events) for session, source in traces]
    clock_ns = _clock_origin(seen, logged)
    captured = events.capture.trace_name if events is not None and events.capture else ""
    placed = _on_one_clock(seen, clock_ns, captured or logging_host)
    notes += clock_notes([p.clock for p in placed])
    notes += split_session_notes(placed)
    reference = _reference(placed, captured)
    bounds = _bounds(placed, reference, logged, clock_ns, notes)
    # A damaged trace may hold its steps inside of what makes their iterator: an empty window.
    bounds = replace(bounds, end_ps=max(bounds.start_ps, bounds.end_ps))
    window = Window(
        start_unix_ns=None if clock_ns is None else clock_ns + bounds.start_ps // PS_PER_NS,
        duration_ps=bounds.end_ps - bounds.start_ps,
        start_source=bounds.start_source,
        end_source=bounds.end_source,
        epoch=0 if reference is not None or logged is not None else None,
    )
    aligned = tuple(_align_one(p, clock_ns, bounds, notes) for p in placed)
    parts = _traced_parts(placed, reference, aligned, events, logged)
    steps = find_steps(parts, events, window, logged)
    return Timeline(
        window=window,
        traces=aligned,
        steps=steps,
        phases=_phases(steps, window, logged),
        training_steps=logged.steps if logged is not None else None,
        later_epochs_ps=_later_epochs(reference, logged, bounds.end_ps),
        events=events,
        notes=tuple(notes),
        meetings=meetings_of(
            [p.collectives for p in placed],
            [a.host for a in aligned],
            [a.shift_ps for a in aligned],
            window.duration_ps,
        ),
    )


def _clock_origin(seen: Sequence[Placed], logged: LoggedEpoch | None) -> int | None:
    """Unix ns from which the common clock counts: small numbers of ps, whatever the century."""
    starts = [p.base_unix_ns for p in seen if p.exact and p.base_unix_ns is not None]
    if logged is not None:
        starts.append(logged.start_ns)
    return min(starts) if starts else None


def _on_one_clock(seen: Sequence[Placed], clock_ns: int | None, logging_host: str) -> list[Placed]:
    hosts = [p.source.host for p in seen]
    # A worker's trace is called by its host and its task.
    leader = next((h for h in hosts if f"{h}-".startswith(f"{logging_host}-")), "")
    placements = place_hosts([p.clocked(clock_ns) for p in seen], leader, clock_ns is None)
    return [
        replace(p, origin_ps=placement.origin_ps, clock=placement.clock)
        for p, placement in zip(seen, placements, strict=True)
    ]


def _reference(placed: Sequence[Placed], leader: str) -> Placed | None:
    """The trace that tells the epoch best: the earliest that saw one begin, else the earliest.

    Of a cluster that was captured, those of the process whose marks count.
    """

    def worse(p: Placed) -> tuple[bool, bool, int]:
        return p.source.host != leader, not p.epochs[0].begin_seen, p.origin_ps or 0

    return min((p for p in placed if p.epochs), key=worse, default=None)


def _together_with(reference: Placed, placed: Sequence[Placed]) -> list[Placed]:
    """Traces of the same time that show the same epoch, the reference among them."""
    return [
        p
        for p in placed
        if p is reference
        or (
            p.source.host != reference.source.host
            and p.epochs
            and p.origin_ps is not None
            and reference.origin_ps is not None
            and p.origin_ps + p.epochs[0].start_ps < reference.origin_ps + reference.last_work_ps
            and reference.origin_ps + reference.epochs[0].start_ps < p.origin_ps + p.last_work_ps
        )
    ]


def _bounds(
    placed: Sequence[Placed],
    reference: Placed | None,
    logged: LoggedEpoch | None,
    clock_ns: int | None,
    notes: list[Note],
) -> _Bounds:
    from_log = None
    if logged is not None and clock_ns is not None:
        from_log = _Bounds(
            (logged.start_ns - clock_ns) * PS_PER_NS,
            (logged.end_ns - clock_ns) * PS_PER_NS,
            logged.start_source,
            logged.end_source,
        )
        if not logged.finished:
            notes.append(Note("warning", "The event files show no finished epoch."))
        if logged.marked:
            if reference is not None and (reference.origin_ps or 0) >= from_log.end_ps:
                notes.append(Note("warning", LATE_PROFILE))
            return from_log
    if reference is None or (reference.origin_ps is None and from_log is not None):
        return from_log or _without_epoch(placed, notes)
    if from_log is not None and reference.clock.source == BY_NAME:
        return from_log
    more_logged = logged is not None and bool(logged.later_ns)
    return _from_trace(reference, placed, from_log, more_logged, notes)


def _from_trace(
    reference: Placed,
    placed: Sequence[Placed],
    from_log: _Bounds | None,
    more_logged: bool,
    notes: list[Note],
) -> _Bounds:
    epoch = reference.epochs[0]
    origin = reference.origin_ps or 0
    begin = origin + reference.extent_ps[0]
    if from_log is not None and begin >= from_log.end_ps:
        notes.append(Note("warning", LATE_PROFILE))
        return from_log
    start, start_source = origin + epoch.start_ps, epoch.start_source
    late = from_log is not None and begin > from_log.start_ps + BEGIN_TOLERANCE_PS
    if from_log is not None and (late or not epoch.begin_seen):
        start, start_source = from_log.start_ps, from_log.start_source
        if late:
            notes.append(Note("warning", "The profile began after the first epoch had begun."))
    elif not epoch.begin_seen:
        start, start_source = begin, "the trace begins"
        notes.append(
            Note("warning", "The trace begins inside an epoch: what came before is not in it.")
        )
    # Callbacks may go on after the scalars were written. But if only one epoch was logged, what
    # begins next in the trace is another fit().
    ends_later = more_logged and epoch.end_exact
    if epoch.end_ps is not None and (
        from_log is None or (ends_later and origin + epoch.end_ps > from_log.end_ps)
    ):
        return _Bounds(start, origin + epoch.end_ps, start_source, epoch.end_source)
    if from_log is not None and from_log.end_ps > start:
        return _Bounds(start, from_log.end_ps, start_source, from_log.end_source)
    if epoch.end_ps is not None:
        return _Bounds(start, origin + epoch.end_ps, start_source, epoch.end_source)
    last = max((p.origin_ps or 0) + p.last_work_ps for p in _together_with(reference, placed))
    return _Bounds(start, last, start_source, "last step in the trace")


def _without_epoch(placed: Sequence[Placed], notes: list[Note]) -> _Bounds:
    """Without an epoch: the steps that a device shows or, without those, all that was traced."""
    if not placed:
        return _Bounds(0, 0, "nothing was recorded", "nothing was recorded")
    for p in placed:
        if p.steps is not None and len(p.steps.start_ps):
            origin = p.origin_ps or 0
            notes.append(Note("info", "No thread trains here: the window is the device's steps."))
            start, end = int(p.steps.start_ps.min()), int(p.steps.end_ps.max())
            return _Bounds(origin + start, origin + end, "first step", "last step of the device")
    notes.append(
        Note("warning", "No training step was found: the whole trace is the window, not an epoch.")
    )
    extents = [
        ((p.origin_ps or 0) + p.extent_ps[0], (p.origin_ps or 0) + p.extent_ps[1]) for p in placed
    ]
    start, end = min(e[0] for e in extents), max(e[1] for e in extents)
    return _Bounds(start, end, "the trace begins", "the trace ends")


def _align_one(
    placed: Placed, clock_ns: int | None, bounds: _Bounds, notes: list[Note]
) -> AlignedTrace:
    origin = placed.origin_ps
    begin, end = placed.extent_ps
    duration = bounds.end_ps - bounds.start_ps
    if origin is None:
        # Where nothing has a clock, the traces' own times are all there is. Where only this one
        # has none, it sits at the window's beginning.
        origin = 0 if clock_ns is None else bounds.start_ps - begin
    shift = origin - bounds.start_ps
    if placed.clock.source == BY_NAME:
        shift = min(max(shift, -begin), max(duration - end, -begin))
        notes.append(
            Note(
                "info",
                "This trace has no clock of its own; its place in the epoch is known to about a "
                "second.",
                placed.session.id,
            )
        )
    covered = (min(max(begin + shift, 0), duration), min(max(end + shift, 0), duration))
    steps = placed.steps
    return AlignedTrace(
        source=placed.source,
        session=placed.session.id,
        shift_ps=shift,
        covered_ps=covered,
        training=placed.training,
        eager=steps is not None and steps.eager,
        clock=placed.clock,
        steps=_steps_inside(steps, shift, duration),
        cluster_hosts=placed.collectives.hosts,
        is_cut=placed.is_cut,
    )


def _steps_inside(steps: Iterations | None, shift: int, duration: int) -> TracedSteps | None:
    if steps is None:
        return None
    start = steps.start_ps[steps.training] + shift
    inside = start[(start >= 0) & (start < duration)]
    return TracedSteps(len(inside), int(inside.max(initial=0)))


def _traced_parts(
    placed: Sequence[Placed],
    reference: Placed | None,
    aligned: Sequence[AlignedTrace],
    events: EventLog | None,
    logged: LoggedEpoch | None,
) -> list[TracedPart]:
    """What the sessions of one host saw of its steps."""
    telling = reference or next((p for p in placed if p.steps is not None), None)
    if telling is None:
        return []
    return [
        TracedPart(p.steps, a.shift_ps, a.covered_ps[1], _first_number(a, events, logged))
        for p, a in zip(placed, aligned, strict=True)
        if p is telling or (p.source.host == telling.source.host and p.origin_ps is not None)
        if p.steps is not None
    ]


def _first_number(
    aligned: AlignedTrace, events: EventLog | None, logged: LoggedEpoch | None
) -> int | None:
    """Which step of the epoch a session began with, where a capture says so."""
    capture = events.capture if events is not None else None
    if capture is None or logged is None or logged.first_step is None:
        return None
    opened = capture.opened(aligned.session.rpartition("/")[2])
    if opened is None or opened.first_step is None:
        return None
    return max(opened.first_step - logged.first_step, 0)


def _phases(
    steps: tuple[Step, ...], window: Window, logged: LoggedEpoch | None
) -> tuple[Phase, ...]:
    if logged is not None and logged.marked:
        return marked_phases(steps, window, logged)
    # Do the steps tell the epoch's course, or are they the few that were profiled?
    are_all = sum(step.end_ps - step.start_ps for step in steps) > window.duration_ps // 4
    return phases_of(steps if are_all else (), window.duration_ps)


def _later_epochs(
    reference: Placed | None, logged: LoggedEpoch | None, first_end_ps: int
) -> tuple[int, ...]:
    """Of the log, or of the trace: there, a callback that evaluates looks like a new epoch."""
    if logged is not None and logged.later_ns:
        return tuple(gap * PS_PER_NS for gap in logged.later_ns)
    if reference is None:
        return ()
    origin, epochs = reference.origin_ps or 0, reference.epochs[1:]
    ended = ((e.start_ps, e.end_ps) for e in epochs if e.end_ps is not None)
    later = [(start, end) for start, end in ended if origin + end > first_end_ps]
    # In a damaged trace an epoch may end before what makes its iterator does.
    return tuple(end - start for start, end in later if end > start)
