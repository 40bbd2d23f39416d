"""What the traces of a host can and cannot show, so that silence is not read as zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.attribute.allocator_waits import allocator_rows
from stall_analyzer.attribute.contention import pipeline_lines, python_rows
from stall_analyzer.attribute.device_work import device_view
from stall_analyzer.model.columns import is_in
from stall_analyzer.model.format import percent
from stall_analyzer.model.intervals import total
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import ABSENT, rows_beginning, stat_of

# There was no accelerator to train on. docs/explanation/accuracy.md says what was compared.
HOW_CHECKED = (
    "The rules for devices were checked by simulation and against XProf's figures for public "
    "traces, not by training on a real device."
)


def what_could_be_seen(
    parts: Sequence[AlignedTrace], input_wait_ps: int, sampled: bool = False
) -> Mapping[str, str]:
    """`sampled`: a capture sampled Python's stacks."""
    if not parts:
        return {}
    traces = [part.trace for part in parts]
    allocations = sum(len(allocator_rows(trace)) for trace in traces)
    python = sum(len(rows_beginning(trace, "$")) for trace in traces)
    seen = {
        "memory": f"{allocations} allocator event{'' if allocations == 1 else 's'}."
        if allocations
        else "No allocator events: memory waits could not be seen.",
        "python": f"{python} Python call{'' if python == 1 else 's'} recorded."
        if python
        else "No Python tracer: the lines of code come from the capture's samples."
        if sampled
        else "No Python tracer: time in Python cannot be attributed to functions.",
    }
    if sentence := _python_in_pipeline(parts, input_wait_ps):
        seen["input"] = sentence
    for trace in traces:
        if (view := device_view(trace, 0, 1)) is not None:
            seen["device"] = f"{view.sentence} {HOW_CHECKED}" if view.traced else view.sentence
    return seen


def _python_in_pipeline(parts: Sequence[AlignedTrace], input_wait_ps: int) -> str:
    """Python functions and generators that tf.data called: slow ones are the usual culprit."""
    covered = sum(end - begin for begin, end in (part.covered_ps for part in parts))
    busy = sum(_pipeline_python_ps(part.trace) for part in parts)
    if not busy or not covered:
        return ""
    return (
        f"Python code in the input pipeline ran for {percent(busy, covered)} of the traced time; "
        f"input held up training for {percent(input_wait_ps, covered)} of it."
    )


def _pipeline_python_ps(trace: Trace) -> int:
    """On threads of the pipeline; older versions do not name them, but their runs are known by id.
    (A map's function may run under its own id, so ids alone miss most.)"""
    events = trace.events
    calls = python_rows(trace)
    if len(calls) == 0:
        return 0
    captured = rows_beginning(trace, "InstantiatedCapturedFunction::")
    run = np.where(events.parent[calls] >= 0, stat_of(trace, "id", events.parent[calls]), ABSENT)
    by_id = (run != ABSENT) & is_in(run, stat_of(trace, "id", captured))
    calls = calls[by_id | pipeline_lines(trace)[events.line[calls]]]
    return total(events.start_ps[calls], events.end_ps[calls])
