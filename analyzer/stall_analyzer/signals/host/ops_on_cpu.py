"""Ops that computed on the host inside steps, in a run whose device was traced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.align.training_thread import HOST_PLANE
from stall_analyzer.attribute.allocator_waits import WAIT_FROM_PS
from stall_analyzer.decode.vocabulary import INPUT_OPS, PY_FUNC_OPS, XLA_OPS, op_type
from stall_analyzer.model.intervals import enclosing, union
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace_rows import name_of, rows_named
from stall_analyzer.signals.input.input_pipeline import NEVER, Spans

OTHERS = INPUT_OPS | PY_FUNC_OPS | XLA_OPS  # these have their own findings


def ops_on_cpu(traces: Sequence[AlignedTrace]) -> tuple[Spans, dict[str, int]]:
    """When they ran, in window time, and for how long by type of op; not in the first call of a
    graph, which prepares the kernels."""
    spans: list[Spans] = [NEVER]
    kinds: dict[str, int] = {}
    for aligned in traces:
        trace, training = aligned.trace, aligned.training
        if training is None:
            continue
        events, calls = trace.events, training.calls
        rows = rows_named(trace, lambda name: (op_type(name) or "_XlaRun") not in OTHERS)
        on_host = np.array([trace.planes[line.plane].name == HOST_PLANE for line in trace.lines])
        rows = rows[on_host[events.line[rows]] & (events.duration_ps[rows] > WAIT_FROM_PS)]
        call = enclosing(calls.start_ps, calls.end_ps, events.start_ps[rows])
        rows = rows[(call >= 0) & ~calls.traced[call]]
        start = events.start_ps[rows] + aligned.shift_ps
        spans.append(union(start, start + events.duration_ps[rows]))
        for row in rows.tolist():
            kind = op_type(name_of(trace, row))
            kinds[kind] = kinds.get(kind, 0) + int(events.duration_ps[row])
    starts, ends = (np.concatenate([span[side] for span in spans]) for side in (0, 1))
    return union(starts, ends), kinds
