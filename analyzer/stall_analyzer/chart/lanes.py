"""From a report to charts: one for each host, with a lane for everything worth looking at.

Nothing is judged here. The ledger, phases and steps are those of the report; the other lanes are
the events themselves, so that a reader can compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stall_analyzer.attribute.xla import is_compiler_event
from stall_analyzer.chart.chart_columns import Chart, Lane, Names, lane_of
from stall_analyzer.chart.curves import curves_of
from stall_analyzer.chart.event_lanes import (
    Part,
    events_lane,
    in_full,
    part_of,
    thread_lanes,
    window_times,
)
from stall_analyzer.decode.device_events import DEVICE_PREFIXES
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
from stall_analyzer.model.trace_rows import name_of, rows_called, rows_named
from stall_analyzer.signals.input.input_pipeline import ROWS_TELL, Stage
from stall_analyzer.signals.signals import Signals

LEDGER = "ledger"
TRAINING_THREAD = "thread"
GRAPH_BUILDING = "tf.function-graph_building"
MOST_PARALLEL_COMPILERS = 4


def charts_of(report: Report) -> tuple[Chart, ...]:
    """One chart for each host; first the one that represents the run."""
    reference = next(host for host in report.hosts if host.ledger is report.ledger)
    others = (host for host in report.hosts if host is not reference)
    return tuple(_chart(report, host) for host in (reference, *others))


def _chart(report: Report, host: HostLedger) -> Chart:
    signals = Signals(report.timeline, report.hosts, host)
    names = Names()
    traces = [in_full(aligned) for aligned in signals.traces]
    lanes = [
        _ledger(host, names, "traced exactly" if report.estimate else "where the time went"),
        _phases(report.timeline, names),
        _steps(report.timeline, names),
        _training_thread(signals, traces, names),
        *(_stage(stage, signals, names) for stage in signals.pipeline.stages),
        _compile(signals, names),
        *_devices(signals, names),
        *thread_lanes(signals, traces, names),
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
    return lane_of((LEDGER, title, "attribution"), int(bounds[-1]), start, end, cause)


def _phases(timeline: Timeline, names: Names) -> Lane:
    errors_ps = off_at_both_ends(phase.error_ps for phase in timeline.phases)
    labels = names.table(map(phase_name, timeline.phases, errors_ps))
    spans, duration_ps = starts_and_ends(timeline.phases), timeline.window.duration_ps
    return lane_of(("phases", "phases", "training"), duration_ps, *spans, labels)


def phase_name(phase: Phase, error_ps: int) -> str:
    """`first step`, and how far off its length may be: `validation ± 1.00 s`"""
    error = f" ± {seconds(error_ps)}" if error_ps else ""
    return phase.name.replace("_", " ") + error


def _steps(timeline: Timeline, names: Names) -> Lane:
    labels = names.table(map(step_name, timeline.steps))
    spans, duration_ps = starts_and_ends(timeline.steps), timeline.window.duration_ps
    return lane_of(("steps", "steps", "training"), duration_ps, *spans, labels)


def step_name(step: Step) -> str:
    return f"step {step.index}" if step.phase == "training" else f"{step.phase} step {step.index}"


def _training_thread(signals: Signals, traces: list[AlignedTrace], names: Names) -> Lane:
    parts = [
        part_of(aligned, aligned.training.line)
        for aligned in traces
        if aligned.training is not None
    ]
    title = f"training thread {signals.host.training_thread or ''}".strip()
    return events_lane((TRAINING_THREAD, title, "training"), signals.window_ps, parts, names)


def _stage(stage: Stage, signals: Signals, names: Names) -> Lane:
    start, end = stage.spans
    title = stage.kind if stage.label == stage.kind else f"{stage.kind} ({stage.label})"
    name = np.full(len(start), names.number(title))
    hint = ", mostly too short to be shown" if stage.seen_share < ROWS_TELL else ""
    label = f"pipeline/{stage.path}", title + hint, "input"
    return lane_of(label, signals.window_ps, start, end, name)


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
        found.append((*window_times(aligned, rows), labels))
    start, end, name = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(start, kind="stable")
    start, end, name = start[order], end[order], name[order]
    row = stack(start, end, MOST_PARALLEL_COMPILERS)
    return lane_of(("compile", "compiling", "compile"), signals.window_ps, start, end, name, row)


def _compile_name(trace: Trace, row: int) -> str:
    name = name_of(trace, row)
    around = int(trace.events.parent[row])
    if name != GRAPH_BUILDING or around < 0:
        return name
    return f"tracing {name_of(trace, around)}"


def _devices(signals: Signals, names: Names) -> Iterator[Lane]:
    """One lane for each line (stream) of each device, whatever the number of sessions."""
    found: dict[tuple[str, str], list[Part]] = {}
    for aligned in signals.traces:
        trace = aligned.trace
        for number, line in enumerate(trace.lines):
            plane = trace.planes[line.plane].name
            if plane.startswith(DEVICE_PREFIXES) and line.last_event > line.first_event:
                found.setdefault((plane, line.name), []).append(part_of(aligned, number))
    for (plane, line_name), parts in found.items():
        device = plane.removeprefix("/device:")
        label = f"device/{device}/{line_name}", f"{device} {line_name}", "device"
        yield events_lane(label, signals.window_ps, parts, names)


_NONE = np.empty(0, dtype=np.int64)
