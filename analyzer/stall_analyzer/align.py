"""Put traces and event files on one clock, and find the first epoch in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stall_analyzer.clock import base_from_capture, base_from_summaries
from stall_analyzer.epochs import RESET, Epoch, find_epochs
from stall_analyzer.iterations import (
    Iterations,
    device_iterations,
    find_iterations,
    find_landmarks,
)
from stall_analyzer.logged import LoggedEpoch, epoch_from_events
from stall_analyzer.model import (
    PS_PER_MS,
    PS_PER_NS,
    AlignedTrace,
    EventLog,
    Note,
    Phase,
    Session,
    Step,
    Timeline,
    Trace,
    TrainingThread,
    Window,
)
from stall_analyzer.names import rows_called
from stall_analyzer.phases import phases_of
from stall_analyzer.steps import TracedPart, find_steps, marked_phases
from stall_analyzer.training import follow_training, rows_of_line

# A trace that begins this soon after the epoch has seen its beginning: the event files' own idea
# of the beginning is early by 2 to 10 ms.
BEGIN_TOLERANCE_PS = 50 * PS_PER_MS
# What begins this soon after a loop's last step still belongs to the loop.
LOOP_END_PS = 50 * PS_PER_MS
LATE_PROFILE = "The profile was taken after the first epoch."


@dataclass(frozen=True)
class _Placed:
    """A trace, what it shows of training, and its place on the common clock."""

    trace: Trace
    session: Session
    training: TrainingThread | None
    steps: Iterations | None
    epochs: tuple[Epoch, ...]
    origin_ps: int | None  # its time zero on the common clock; None: no clock to place it on
    exact: bool  # False: placed by the session's name, to the second

    @property
    def extent_ps(self) -> tuple[int, int]:
        """What the profiler recorded, in trace time."""
        events = self.trace.events
        last = int(events.end_ps.max(initial=0))
        if self.trace.base_unix_ns is None:
            return int(events.start_ps.min(initial=last)), last
        if self.trace.stop_unix_ns is not None:
            last = max(last, (self.trace.stop_unix_ns - self.trace.base_unix_ns) * PS_PER_NS)
        return 0, last

    @property
    def last_work_ps(self) -> int:
        """When training last did something, in trace time: a step, or a run that failed."""
        assert self.steps is not None and self.training is not None
        last = max(
            int(self.steps.end_ps.max(initial=0)), int(self.training.runs.end_ps.max(initial=0))
        )
        ends = self.trace.events.end_ps
        if self.epochs[0].start_source == RESET:
            # Keras still works out the epoch's metrics after its last batch.
            return max(last, int(ends[rows_of_line(self.trace, self.training.line)].max(initial=0)))
        # A loop takes its iterator down when it ends; deleting has a row only when it is slow.
        span = rows_of_line(self.trace, self.training.line)
        deleted = rows_called(self.trace, "TFE_DeleteTensorHandle")
        deleted = deleted[(deleted >= span.start) & (deleted < span.stop)]
        starts = self.trace.events.start_ps[deleted]
        after = deleted[(starts >= last) & (starts < last + LOOP_END_PS)]
        return max(last, int(ends[after].max(initial=0)))


@dataclass(frozen=True)
class _Bounds:
    """The window on the common clock."""

    start_ps: int
    end_ps: int
    start_source: str
    end_source: str


def align(traces: Sequence[tuple[Session, Trace]], events: EventLog | None) -> Timeline:
    """The first epoch's window, its steps and phases, and each trace's place in it."""
    notes: list[Note] = []
    logged = epoch_from_events(events)
    clock_ns = _clock_origin(traces, logged)
    placed = [_place(session, trace, events, clock_ns) for session, trace in traces]
    reference = _reference(placed, events)
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
        later_epochs_ps=_later_epochs(reference, logged),
        events=events,
        notes=tuple(notes),
    )


def _clock_origin(
    traces: Sequence[tuple[Session, Trace]], logged: LoggedEpoch | None
) -> int | None:
    """Unix ns from which the common clock counts: small numbers of ps, whatever the century."""
    starts = [trace.base_unix_ns for _, trace in traces if trace.base_unix_ns is not None]
    if logged is not None:
        starts.append(logged.start_ns)
    return min(starts) if starts else None


def _place(
    session: Session, trace: Trace, events: EventLog | None, clock_ns: int | None
) -> _Placed:
    base_ns, exact = trace.base_unix_ns, True
    if base_ns is None and events is not None:
        base_ns = base_from_summaries(trace, events) or base_from_capture(trace, session, events)
    if base_ns is None and session.exported_unix_s is not None:
        # The name of a session is the second in which it was exported, after its end.
        last_ns = int(trace.events.end_ps.max(initial=0)) // PS_PER_NS
        base_ns, exact = session.exported_unix_s * 1_000_000_000 - last_ns, False
    origin = None if base_ns is None or clock_ns is None else (base_ns - clock_ns) * PS_PER_NS
    training = follow_training(trace)
    if training is None:
        return _Placed(trace, session, None, device_iterations(trace), (), origin, exact)
    landmarks = find_landmarks(trace, training)
    steps = find_iterations(trace, training, landmarks)
    return _Placed(trace, session, training, steps, find_epochs(steps, landmarks), origin, exact)


def _reference(placed: Sequence[_Placed], events: EventLog | None) -> _Placed | None:
    """The trace that tells the epoch best: the earliest that saw one begin, else the earliest.

    Of a cluster that was captured, those of the process whose marks count.
    """
    capture = events.capture if events is not None else None
    leader = capture.trace_name if capture is not None else None

    def worse(p: _Placed) -> tuple[bool, bool, int]:
        return p.trace.host != leader, not p.epochs[0].begin_seen, p.origin_ps or 0

    return min((p for p in placed if p.epochs), key=worse, default=None)


def _bounds(
    placed: Sequence[_Placed],
    reference: _Placed | None,
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
    if from_log is not None and not reference.exact:
        return from_log
    more_logged = logged is not None and bool(logged.later_ns)
    return _from_trace(reference, from_log, more_logged, notes)


def _from_trace(
    reference: _Placed, from_log: _Bounds | None, more_logged: bool, notes: list[Note]
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
    return _Bounds(start, origin + reference.last_work_ps, start_source, "last step in the trace")


def _without_epoch(placed: Sequence[_Placed], notes: list[Note]) -> _Bounds:
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
    placed: _Placed, clock_ns: int | None, bounds: _Bounds, notes: list[Note]
) -> AlignedTrace:
    origin = placed.origin_ps
    begin, end = placed.extent_ps
    duration = bounds.end_ps - bounds.start_ps
    if origin is None:
        # Where nothing has a clock, the traces' own times are all there is. Where only this one
        # has none, it sits at the window's beginning.
        origin = 0 if clock_ns is None else bounds.start_ps - begin
    shift = origin - bounds.start_ps
    if not placed.exact:
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
    eager = placed.steps is not None and placed.steps.eager
    return AlignedTrace(placed.trace, placed.session.id, shift, covered, placed.training, eager)


def _traced_parts(
    placed: Sequence[_Placed],
    reference: _Placed | None,
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
        if p is telling or (p.trace.host == telling.trace.host and p.origin_ps is not None)
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


def _later_epochs(reference: _Placed | None, logged: LoggedEpoch | None) -> tuple[int, ...]:
    if logged is not None and logged.later_ns:
        return tuple(gap * PS_PER_NS for gap in logged.later_ns)
    epochs = reference.epochs[1:] if reference is not None else ()
    return tuple(e.end_ps - e.start_ps for e in epochs if e.end_ps is not None)
