"""What one trace shows about training, and when, by its own clock.

Only this is kept of a trace until its time is divided: the traces of a large cluster do not all fit
in memory at once.
"""

from __future__ import annotations

from stall_analyzer.align.collectives import Collectives, collectives_of
from stall_analyzer.align.epochs import RESET, Epoch, find_epochs
from stall_analyzer.align.side_work import with_side_work
from stall_analyzer.align.trace_clock import (
    base_from_capture,
    base_from_profiled_batch,
    base_from_summaries,
    closed_by_capture,
)
from stall_analyzer.align.traced_steps import device_steps, find_landmarks, find_traced_steps
from stall_analyzer.align.training_thread import follow_training
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.kinds import Framework
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.timeline import HostClock, TracedSteps, TrainingThread
from stall_analyzer.model.trace import Trace, TraceSource
from stall_analyzer.model.trace_rows import rows_called, rows_inside, rows_of_line
from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS

# What begins this soon after a loop's last step still belongs to the loop.
LOOP_END_PS = 50 * PS_PER_MS


@dataclass(frozen=True)
class PlacedTrace:
    """A trace, what it shows of training, and its place on the common clock."""

    source: TraceSource
    session: ProfileSession
    training: TrainingThread | None
    steps: TracedSteps | None
    epochs: tuple[Epoch, ...]
    collectives: Collectives
    extent_ps: tuple[int, int]  # what the profiler recorded, in trace time
    last_work_ps: int  # when training last did something: a step, or a graph run that failed
    base_unix_ns: int | None  # when its time zero was, by its own clock
    exact: bool  # False if placed by the session's name, to the second
    is_cut: bool
    framework: Framework
    origin_ps: int | None  # its time zero on the common clock; None if not known
    clock: HostClock

    @property
    def host(self) -> str:
        return self.source.host

    def on_clock(self, ps: int) -> int:
        """An instant of the trace on the common clock, or on its own clock if it has no place
        there."""
        return (self.origin_ps or 0) + ps


def inspect_trace(
    session: ProfileSession, source: TraceSource, events: EventLog | None
) -> PlacedTrace:
    """Reads the trace, and keeps only what the alignment needs."""
    trace = source.read()
    base_ns, exact = _base_unix_ns(session, trace, events)
    closed_ns = None if events is None else closed_by_capture(trace, session, events)
    extent_ps = _extent_ps(trace, closed_ns)
    # What a thread waits for is known only for TensorFlow: JAX calls a step and continues at once.
    training = follow_training(trace) if trace.framework == "tensorflow" else None
    epochs: tuple[Epoch, ...] = ()
    if training is None:
        steps = device_steps(trace)
    else:
        training = with_side_work(trace, training)
        landmarks = find_landmarks(trace, training)
        steps = find_traced_steps(trace, training)
        epochs = find_epochs(steps, landmarks)
    return PlacedTrace(
        source=source,
        session=session,
        training=training,
        steps=steps,
        epochs=epochs,
        collectives=collectives_of(trace),
        extent_ps=extent_ps,
        last_work_ps=(
            extent_ps[1]
            if training is None or steps is None
            else _last_work_ps(trace, training, steps, epochs)
        ),
        base_unix_ns=base_ns,
        exact=exact,
        is_cut=trace.is_cut,
        framework=trace.framework,
        origin_ps=None,
        clock=HostClock("none"),
    )


def _base_unix_ns(
    session: ProfileSession, trace: Trace, events: EventLog | None
) -> tuple[int | None, bool]:
    """When its time zero was, and whether that is exact."""
    base_ns = trace.base_unix_ns
    if base_ns is None and events is not None:
        base_ns = (
            base_from_summaries(trace, events)
            or base_from_capture(trace, session, events)
            or base_from_profiled_batch(trace, session, events)
        )
    if base_ns is None and session.exported_unix_s is not None:
        # A session is named by the second in which it was exported, after its end.
        last_ns = int(trace.events.end_ps.max(initial=0)) // PS_PER_NS
        return session.exported_unix_s * 1_000_000_000 - last_ns, False
    return base_ns, True


def _extent_ps(trace: Trace, closed_ns: int | None) -> tuple[int, int]:
    """`closed_ns`: when the capture that made it ended it, if one did."""
    events = trace.events
    last = int(events.end_ps.max(initial=0))
    if trace.base_unix_ns is None:
        return int(events.start_ps.min(initial=last)), last
    stops_ns = [ns for ns in (trace.stop_unix_ns, closed_ns) if ns is not None]
    if stops_ns:
        last = max(last, (min(stops_ns) - trace.base_unix_ns) * PS_PER_NS)
    return 0, last


def _last_work_ps(
    trace: Trace, training: TrainingThread, steps: TracedSteps, epochs: tuple[Epoch, ...]
) -> int:
    last = max(int(steps.end_ps.max(initial=0)), int(training.runs.end_ps.max(initial=0)))
    span = rows_of_line(trace, training.line)
    ends = trace.events.end_ps
    if epochs and epochs[0].start_source == RESET:
        # Keras still computes the epoch's metrics after its last batch.
        return max(last, int(ends[span].max(initial=0)))
    # A loop deletes its iterator when it ends; deleting is recorded only if it is slow.
    deleted = rows_inside(span, rows_called(trace, "TFE_DeleteTensorHandle"))
    starts = trace.events.start_ps[deleted]
    after = deleted[(starts >= last) & (starts < last + LOOP_END_PS)]
    return max(last, int(ends[after].max(initial=0)))
