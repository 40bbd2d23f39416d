"""XLA compilation inside a step.

The compiler names its passes, but half of its work (turning the graph into HLO) has no event. So
the whole stretch from the start of the compiled call to the start of the compiled code counts, if
the compiler shows itself in between. New code also creates kernels in its first run; the extra time
of that run counts, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stall_analyzer.attribute.executor import ASYNC_START, Region
from stall_analyzer.decode.vocabulary import XLA_OPS, op_type
from stall_analyzer.model.columns import is_in, median
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_called, rows_named

EXECUTE = "CpuExecutable::ExecuteAsyncOnStream"
LATER_RUNS = 3  # fewer do not show how long a run usually takes
COMPILER_PREFIXES = (
    "HLO passes", "CpuCompiler::", "GpuCompiler::", "NVPTXCompiler::", "JitCompiler::Compile",
    "XlaCompile", "Codegen", "CompileToHlo", "TfrtTpuCompiler::", "backend_compile",
)  # fmt: skip


def is_compiler_event(name: str) -> bool:
    return name.startswith(COMPILER_PREFIXES)


def xla_regions(trace: Trace) -> Iterator[Region]:
    """Each compilation, from the start of the call that needed it to the code's first run."""
    events = trace.events
    passes = rows_named(trace, is_compiler_event)
    if len(passes) == 0:
        return
    outermost = passes[~is_in(events.parent[passes], passes)]
    calls = rows_named(trace, lambda name: name == ASYNC_START or op_type(name) in XLA_OPS)
    executes = rows_called(trace, EXECUTE)
    usual = int(median(events.duration_ps[executes])) if len(executes) else 0
    for call in sorted({c for p in outermost if (c := _enclosing_call(trace, p, calls)) >= 0}):
        line, start, end = int(events.line[call]), events.start_ps[call], events.end_ps[call]
        inside = outermost[
            (events.line[outermost] == line)
            & (events.start_ps[outermost] >= start)
            & (events.start_ps[outermost] < end)
        ]
        compiled = events.end_ps[inside].max()
        runs = executes[events.line[executes] == line]
        runs = runs[(events.start_ps[runs] >= compiled) & (events.start_ps[runs] < end)]
        until = int(events.start_ps[runs].min(initial=end))
        if len(runs) and len(executes) > LATER_RUNS:
            until += max(int(events.duration_ps[runs[0]]) - usual, 0)
        yield Region(line, int(start), until, "compile.xla")


def _enclosing_call(
    trace: Trace, row: int, calls: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> int:
    """The compiled call around an event, or -1."""
    around = int(trace.events.parent[row])
    while around >= 0:
        index = np.searchsorted(calls, around)
        if index < len(calls) and calls[index] == around:
            return around
        around = int(trace.events.parent[around])
    return -1
