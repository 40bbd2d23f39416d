"""Traces in which no thread trains: remote workers, inference servers, other frameworks.

Nothing waits there in a way that we can follow. What can be recognized is counted; the rest is
unknown.
"""

from __future__ import annotations

from stall_analyzer.attribute.xla import is_compiler_event
from stall_analyzer.model.causes import code
from stall_analyzer.model.intervals import Layer, Tiling, paint
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_named


def untrained_tiling(trace: Trace, begin: int, end: int) -> Tiling:
    events = trace.events
    starting = rows_named(trace, lambda n: n.endswith("start_trace"))
    stopping = rows_named(trace, lambda n: n.endswith("stop_trace"))
    compiling = rows_named(trace, is_compiler_event)
    layers = [
        Layer(events.start_ps[rows], events.end_ps[rows], code(cause))
        for rows, cause in (
            (starting, "profiler.start"),
            (stopping, "profiler.stop"),
            (compiling, "compile.xla"),
        )
    ]
    return paint(begin, end, layers, default=code("unknown.no_evidence"))
