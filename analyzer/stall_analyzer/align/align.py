"""Put traces and event files on one clock, and find the first epoch in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stall_analyzer.align.booked_workers import booked_meetings, booked_workers, with_workers
from stall_analyzer.align.collectives import meetings_of
from stall_analyzer.align.fits import fits_of, note_of, profiled_fit
from stall_analyzer.align.host_clocks import clock_notes, place_hosts
from stall_analyzer.align.logged_epoch import (
    LONGEST_NS,
    LoggedEpoch,
    batch_series,
    epoch_from_events,
)
from stall_analyzer.align.marks import Profile, first_step_of
from stall_analyzer.align.phases import find_phases
from stall_analyzer.align.placed_trace import PlacedTrace, inspect_trace
from stall_analyzer.align.split_sessions import split_session_notes
from stall_analyzer.align.steps import find_steps
from stall_analyzer.align.window import find_window, later_epochs_ps
from stall_analyzer.files.guard import guarded
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.timeline import (
    AlignedTrace,
    FirstStep,
    Step,
    Timeline,
    TracedSteps,
    Window,
)
from stall_analyzer.model.trace import TraceSource
from stall_analyzer.model.units import NS_PER_S, PS_PER_NS


def align(
    traces: Iterable[tuple[ProfileSession, TraceSource]],
    events: EventLog | None,
    logging_host: str = "",
) -> Timeline:
    """The first epoch's window, its steps and phases, and each trace's place in it. `logging_host`
    is the host that wrote the event files, by its clock.
    """
    notes: list[Note] = []
    seen: list[PlacedTrace] = []
    for session, source in traces:
        with guarded(f"The trace of {source.host}", notes, session.id):
            seen.append(inspect_trace(session, source, events))
    events, told = profiled_fit(events, seen)
    workers = booked_workers(events)
    events = with_workers(events, workers) if events is not None else None
    logged = _believable(epoch_from_events(events, _first_traced_ns(seen)), notes)
    clock_ns = _clock_origin(seen, logged)
    captured = events.capture.trace_name if events is not None and events.capture else ""
    placed = place_hosts(seen, clock_ns, captured or logging_host)
    clocks = [*(p.clock for p in placed), *(worker.clock for worker in workers)]
    notes += [*clock_notes(clocks), *split_session_notes(placed)]
    reference = _reference(placed, captured)
    window = find_window(placed, reference, logged, clock_ns, notes)
    fits = fits_of(events, told, reference)
    notes += [note for note in (note_of(fits),) if note is not None]
    aligned = tuple(_align_one(p, window, notes) for p in placed)
    steps = find_steps(_telling(placed, aligned, reference), events, window, logged)
    first_step = _first_step(placed, events, window)
    traced_until = max((a.covered_ps[1] for a in aligned), default=0)
    return Timeline(
        window=window,
        traces=aligned,
        steps=steps,
        phases=find_phases(steps, window, logged, first_step, traced_until),
        first_step=first_step,
        training_steps=_training_steps(logged, steps),
        later_epochs_ps=later_epochs_ps(reference, logged, window),
        events=events,
        notes=tuple(notes),
        fits=fits,
        meetings=meetings_of(
            [p.collectives for p in placed],
            [a.host for a in aligned],
            [a.shift_ps for a in aligned],
            window.duration_ps,
        )
        or booked_meetings(workers, window),
    )


def _believable(logged: LoggedEpoch | None, notes: list[Note]) -> LoggedEpoch | None:
    if logged is None or not logged.is_too_long:
        return logged
    text = "According to the event files, the first epoch took months, so their times are ignored."
    notes.append(Note("warning", text))
    return None


def _first_traced_ns(seen: Sequence[PlacedTrace]) -> int | None:
    """When the first trace that shows a step began."""
    began = (
        p.base_unix_ns + p.extent_ps[0] // PS_PER_NS
        for p in seen
        if p.exact and p.base_unix_ns is not None and p.epochs
    )
    return min(began, default=None)


def _training_steps(logged: LoggedEpoch | None, steps: Sequence[Step]) -> int | None:
    """The logged count. If more steps than that were seen, it counts something else."""
    count = logged.steps if logged is not None else None
    seen = sum(step.phase == "training" for step in steps)
    believed = count is not None and (count >= seen or (logged is not None and logged.marked))
    return count if believed else None


def _first_step(
    placed: Sequence[PlacedTrace], events: EventLog | None, window: Window
) -> FirstStep | None:
    """From an ordinary log; a capture times each step, and a complete trace shows it."""
    if events is None or window.start_unix_ns is None or window.epoch is None:
        return None
    profiles = [
        Profile(p.base_unix_ns + p.extent_ps[0] // PS_PER_NS, p.steps.count, _first_batch(p.steps))
        for p in placed
        if p.exact and p.base_unix_ns is not None and p.steps is not None
    ]
    end_ns = window.start_unix_ns + window.duration_ps // PS_PER_NS
    batches = batch_series(events)
    return first_step_of(events, window.start_unix_ns, end_ns, batches, profiles)


def _first_batch(steps: TracedSteps) -> int | None:
    """The number of the first traced step in its epoch, from 1, as Keras marks batches."""
    return int(steps.number[0]) + 1 if steps.number is not None and len(steps.number) else None


def _clock_origin(seen: Sequence[PlacedTrace], logged: LoggedEpoch | None) -> int | None:
    """Unix ns at which the common clock starts, so that its picoseconds stay small numbers."""
    starts = [p.base_unix_ns for p in seen if p.exact and p.base_unix_ns is not None]
    if logged is not None:
        starts.append(logged.start_ns)
    return min(starts) if starts else None


def _reference(placed: Sequence[PlacedTrace], leader: str) -> PlacedTrace | None:
    """The trace that shows the epoch best: the earliest that saw one begin, else the earliest. In a
    captured cluster, only traces of the process whose marks count.
    """

    def worse(p: PlacedTrace) -> tuple[bool, bool, int]:
        return p.host != leader, not p.epochs[0].begin_seen, p.on_clock(0)

    return min((p for p in placed if p.epochs), key=worse, default=None)


def _telling(
    placed: Sequence[PlacedTrace], aligned: Sequence[AlignedTrace], reference: PlacedTrace | None
) -> list[AlignedTrace]:
    """The traces that show the steps: all placed ones of the host that shows the epoch."""
    best = reference or next((p for p in placed if p.steps is not None), None)
    return [
        a
        for p, a in zip(placed, aligned, strict=True)
        if best is not None and (p is best or (p.host == best.host and p.origin_ps is not None))
    ]


def _align_one(placed: PlacedTrace, window: Window, notes: list[Note]) -> AlignedTrace:
    begin, end = placed.extent_ps
    duration = window.duration_ps
    shift = placed.on_clock(0) - window.start_ps
    if placed.origin_ps is None and window.clock_unix_ns is not None:
        # If nothing has a clock, the traces' own times are all there is. If only this one has none,
        # it is placed at the window's beginning.
        shift = -begin
    if placed.clock.source == "session name":
        shift = min(max(shift, -begin), max(duration - end, -begin))
        text = (
            "This trace has no clock of its own; where it lies in the epoch is known only to "
            "within about a second."
        )
        notes.append(Note("info", text, placed.session.id))
    # A trace from another month is not part of the window, but its place must still fit into int64.
    shift = min(max(shift, -LONGEST_NS * PS_PER_NS), LONGEST_NS * PS_PER_NS)
    return AlignedTrace(
        source=placed.source,
        session=placed.session.id,
        shift_ps=shift,
        covered_ps=(min(max(begin + shift, 0), duration), min(max(end + shift, 0), duration)),
        training=placed.training,
        clock=placed.clock,
        steps=placed.steps.in_window(shift, duration) if placed.steps is not None else None,
        cluster_hosts=placed.collectives.hosts,
        is_cut=placed.is_cut,
        stopping_ps=_stopping_ps(placed),
        framework=placed.framework,
    )


def _stopping_ps(placed: PlacedTrace) -> int:
    """From the end of the trace to the second in which it was exported; 0 if not known."""
    exported_s, base_ns = placed.session.exported_unix_s, placed.base_unix_ns
    if exported_s is None or base_ns is None or not placed.exact:
        return 0
    return max((exported_s * NS_PER_S - base_ns) * PS_PER_NS - placed.extent_ps[1], 0)
