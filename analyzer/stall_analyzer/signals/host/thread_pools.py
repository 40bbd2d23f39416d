"""The thread pools that the steps compute on: how many threads were seen, and what they had to do.

TensorFlow has one pool to run ops in parallel (inter-op, `tf_Compute`) and one for the parts of a
single op (intra-op, `…_Eigen`). Each thread that did anything has its own line in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.attribute.contention import pipeline_lines
from stall_analyzer.captures.capture_records import Environment
from stall_analyzer.decode.vocabulary import INTRA_OP_THREADS, op_type
from stall_analyzer.model.intervals import total
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_named
from stall_analyzer.signals.input.input_pipeline import cores_of

# Ops that TensorFlow divides among the intra-op threads. Those with rows (at least 1 ms) are long
# enough for that.
DIVISIBLE = ("MatMul", "BatchMatMul", "Conv", "DepthwiseConv", "Einsum", "_FusedMatMul",
             "_FusedConv", "_MklMatMul", "_MklFused", "_MklNative", "_MklConv")  # fmt: skip


@dataclass(frozen=True)
class PoolSignals:
    """The thread pools, from the trace that saw most."""

    intra_op_threads: int = 0  # those with their own line, or the setting that a capture recorded
    divisible_ps: int = 0  # how long ops ran that could be divided among them
    cores: int | None = None  # how many the process may use; None: not recorded
    is_setting: bool = False  # the number of threads is what the program set


def pool_signals(
    traces: Sequence[AlignedTrace], environment: Environment | None = None
) -> PoolSignals:
    if not traces:
        return PoolSignals()
    trace = max((aligned.trace for aligned in traces), key=lambda trace: len(trace.events))
    threads = len({line.name for line in trace.lines if INTRA_OP_THREADS in line.name})
    divisible, cores = _divisible_ps(trace), cores_of(trace)
    settings = environment.threads if environment is not None else None
    if environment is None or settings is None or settings.intra_op is None:
        return PoolSignals(threads, divisible, cores)
    cores = environment.cores or cores
    # 0 leaves it to TensorFlow, which uses all cores.
    threads = settings.intra_op or cores or threads
    return PoolSignals(threads, divisible, cores, is_setting=True)


def _divisible_ps(trace: Trace) -> int:
    rows = rows_named(trace, lambda name: op_type(name).startswith(DIVISIBLE))
    rows = rows[~pipeline_lines(trace)[trace.events.line[rows]]]
    return total(trace.events.start_ps[rows], trace.events.end_ps[rows])
