"""What the ops of the graph spent their time on."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.attribute.thread import EAGER_PREFIX
from stall_analyzer.decode.vocabulary import INPUT_OPS, PY_FUNC_OPS, op_type
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import names_where
from stall_analyzer.model.units import Bools

# Keras names the ops of an optimizer after it: `StatefulPartitionedCall/adam_1/Sqrt_3:Sqrt`.
OPTIMIZER = pattern(
    r"(^|/)(sgd|adam|adamw|adamax|nadam|adagrad|adadelta|adafactor|rmsprop|ftrl|lion|lamb)(_\d+)?/"
)
# Ops that only move numbers through the processor once; they run at the speed of the memory.
ELEMENT_WISE = frozenset(
    {"Add", "AddV2", "AddN", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "Sqrt", "Rsqrt", "Square",
     "Pow", "Maximum", "Minimum", "Neg", "Sign", "AssignVariableOp", "AssignAddVariableOp",
     "AssignSubVariableOp", "UnsortedSegmentSum", "ReadVariableOp", "ResourceScatterAdd"}
)  # fmt: skip


@dataclass(frozen=True)
class OpSignals:
    """Sums over all ops of the traces, in the time of the threads that ran them."""

    op_ps: int
    optimizer_ps: int  # element-wise ops of the optimizer


def op_signals(traces: Sequence[AlignedTrace]) -> OpSignals:
    op_ps = optimizer_ps = 0
    for trace in (aligned.trace for aligned in traces):
        spent = trace.totals.self_ps
        ops = graph_ops(trace)
        op_ps += int(spent[ops].sum())
        optimizer_ps += int(spent[ops & names_where(trace, _updates)].sum())
    return OpSignals(op_ps, optimizer_ps)


def graph_ops(trace: Trace) -> Bools:
    """Names of ops that compute: not those that wait for input or for Python."""
    others = INPUT_OPS | PY_FUNC_OPS | {""}
    return names_where(
        trace, lambda name: op_type(name) not in others and not name.startswith(EAGER_PREFIX)
    )


def _updates(name: str) -> bool:
    kind = op_type(name)
    fused = kind.startswith("ResourceApply")
    return fused or (kind in ELEMENT_WISE and OPTIMIZER.search(name) is not None)
