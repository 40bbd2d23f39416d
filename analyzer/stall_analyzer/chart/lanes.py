"""From a report to charts: one for each host, with a lane for everything worth looking at.

Nothing is judged here. The ledger, phases and steps are those of the report; the other lanes are
the events themselves, so that a reader can check the one against the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stall_analyzer.attribute.device_work import DEVICE_PREFIXES
from stall_analyzer.attribute.xla import is_compiler_event
from stall_analyzer.chart.chart_columns import Chart, Lane, Names, lane_of
from stall_analyzer.chart.curves import curves_of
from stall_analyzer.model.causes import CAUSES
from stall_analyzer.model.findings import Report
from stall_analyzer.model.format import seconds
from stall_analyzer.model.intervals import stack
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.timeline import (
    AlignedTrace,
    Phase,
    Step,
    Timeline,
    off_at_both_ends,
    starts_and_ends,
)
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import name_of, rows_called, rows_named, rows_of_line
from stall_analyzer.model.units import Int64s
from stall_analyzer.signals.input.input_pipeline import ROWS_TELL, Stage
from stall_analyzer.signals.signals import Signals

LEDGER = "ledger"
GRAPH_BUILDING = "tf.function-graph_building"
MOST_ROWS = 12  # deeper calls, of the Python tracer for the most part, would fill the screen
MOST_PARALLEL_COMPILERS = 4


def charts_of(report: Report) -> tuple[Chart, ...]:
    """One chart for each host; first the one that stands for the run."""
    reference = next(host for host in report.hosts if host.ledger is report.ledger)
    others = (host for host in report.hosts if host is not reference)
    return tuple(_chart(report, host) for host in (reference, *others))


def _chart(report: Report, host: HostLedger) -> Chart:
    signals = Signals(report.timeline, report.hosts, host)
    names = Names()
    lanes = [
        _ledger(host, names, "traced exactly" if report.estimate else "where the time went"),
        _phases(report.timeline, names),
        _steps(report.timeline, names),
        _training_thread(signals, names),
        *(_stage(stage, signals, names) for stage in signals.pipeline.stages),
        _compile(signals, names),
        *_devices(signals, names),
    ]
    return Chart(
        host.host,
        signals.window_ps,
        tuple(names.numbers),
        tuple(lane for lane in lanes if len(lane)),
        curves_of(signals),
    )


def _ledger(host: HostLedger, names: Names, title: str) -> Lane:
    bounds = host.ledger.bounds_ps
    cause = names.table(CAUSES)[host.ledger.cause]
    start, end = bounds[:-1], bounds[1:]
    return lane_of(LEDGER, title, "attribution", int(bounds[-1]), start, end, cause)


def _phases(timeline: Timeline, names: Names) -> Lane:
    errors_ps = off_at_both_ends(phase.error_ps for phase in timeline.phases)
    labels = names.table(map(phase_name, timeline.phases, errors_ps))
    spans, duration_ps = starts_and_ends(timeline.phases), timeline.window.duration_ps
    return lane_of("phases", "phases", "training", duration_ps, *spans, labels)


def phase_name(phase: Phase, error_ps: int) -> str:
    """`first step`, and how far off its length may be: `validation ± 1.00 s`"""
    error = f" ± {seconds(error_ps)}" if error_ps else ""
    return phase.name.replace("_", " ") + error


def _steps(timeline: Timeline, names: Names) -> Lane:
    labels = names.table(map(step_name, timeline.steps))
    spans, duration_ps = starts_and_ends(timeline.steps), timeline.window.duration_ps
    return lane_of("steps", "steps", "training", duration_ps, *spans, labels)


def step_name(step: Step) -> str:
    return f"step {step.index}" if step.phase == "training" else f"{step.phase} step {step.index}"


def _training_thread(signals: Signals, names: Names) -> Lane:
    parts = [
        (aligned, _rows_of_line(aligned.trace, aligned.training.line))
        for aligned in signals.traces
        if aligned.training is not None
    ]
    title = f"training thread {signals.host.training_thread or ''}".strip()
    return _events_lane("thread", title, "training", signals, parts, names)


def _stage(stage: Stage, signals: Signals, names: Names) -> Lane:
    start, end = stage.spans
    title = stage.kind if stage.label == stage.kind else f"{stage.kind} ({stage.label})"
    name = np.full(len(start), names.number(title))
    hint = ", mostly too short to be shown" if stage.seen_share < ROWS_TELL else ""
    return lane_of(
        f"pipeline/{stage.path}", title + hint, "input", signals.window_ps, start, end, name
    )


def _compile(signals: Signals, names: Names) -> Lane:
    """Graphs being recorded, and the compiler at work, on any thread."""
    found = [(_NONE, _NONE, _NONE)]
    for aligned in signals.traces:
        trace, events = aligned.trace, aligned.trace.events
        rows = np.concatenate(
            [rows_called(trace, GRAPH_BUILDING), rows_named(trace, is_compiler_event)]
        )
        rows = rows[~np.isin(events.parent[rows], rows)]
        labels = names.table(_compile_name(trace, int(row)) for row in rows)
        found.append((*_window_times(aligned, rows), labels))
    start, end, name = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(start, kind="stable")
    start, end, name = start[order], end[order], name[order]
    row = stack(start, end, MOST_PARALLEL_COMPILERS)
    return lane_of("compile", "compiling", "compile", signals.window_ps, start, end, name, row)


def _compile_name(trace: Trace, row: int) -> str:
    name = name_of(trace, row)
    around = int(trace.events.parent[row])
    if name != GRAPH_BUILDING or around < 0:
        return name
    return f"tracing {name_of(trace, around)}"


def _devices(signals: Signals, names: Names) -> Iterator[Lane]:
    """One lane for each line (stream) of each device, whatever the number of sessions."""
    found: dict[tuple[str, str], list[tuple[AlignedTrace, Int64s]]] = {}
    for aligned in signals.traces:
        trace = aligned.trace
        for number, line in enumerate(trace.lines):
            plane = trace.planes[line.plane].name
            if plane.startswith(DEVICE_PREFIXES) and line.last_event > line.first_event:
                part = aligned, _rows_of_line(trace, number)
                found.setdefault((plane, line.name), []).append(part)
    for (plane, line_name), parts in found.items():
        device = plane.removeprefix("/device:")
        yield _events_lane(
            f"device/{device}/{line_name}", f"{device} {line_name}", "device", signals, parts, names
        )


def _events_lane(
    id: str,
    title: str,
    group: str,
    signals: Signals,
    parts: list[tuple[AlignedTrace, Int64s]],
    names: Names,
) -> Lane:
    """The events of lines, each as deep as it is nested."""
    found = [(_NONE, _NONE, _NONE, _NONE)]
    for aligned, all_rows in parts:
        depth = _depth(aligned.trace, all_rows)
        rows, depth = all_rows[depth < MOST_ROWS], depth[depth < MOST_ROWS]
        labels = _labels(aligned.trace, rows, names)
        found.append((*_window_times(aligned, rows), labels, depth))
    start, end, name, row = (np.concatenate(column) for column in zip(*found, strict=True))
    return lane_of(id, title, group, signals.window_ps, start, end, name, row)


def _rows_of_line(trace: Trace, line: int) -> Int64s:
    span = rows_of_line(trace, line)
    return np.arange(span.start, span.stop)


def _window_times(aligned: AlignedTrace, rows: Int64s) -> tuple[Int64s, Int64s]:
    events = aligned.trace.events
    return events.start_ps[rows] + aligned.shift_ps, events.end_ps[rows] + aligned.shift_ps


def _labels(trace: Trace, rows: Int64s, names: Names) -> Int64s:
    """Each event's name, numbered; each name is looked up once."""
    used, where = np.unique(trace.events.name[rows], return_inverse=True)
    return names.table(trace.names[index] for index in used)[where]


def _depth(trace: Trace, rows: Int64s) -> Int64s:
    """How many events are around each, as far as that is shown."""
    depth = np.zeros(len(rows), dtype=np.int64)
    around = trace.events.parent[rows]
    for _ in range(MOST_ROWS):
        depth += around >= 0
        around = np.where(around >= 0, trace.events.parent[around], -1)
    return depth


_NONE = np.empty(0, dtype=np.int64)
