"""What the computing consists of: layers, kinds of ops, and how small the ops are.

Ops are named after the scopes in which they were created: `StatefulPartitionedCall/gradient_tape/
sequential_1/dense_1/MatMul/MatMul_1:_MklMatMul` belongs to the layer `sequential_1/dense_1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from stall_analyzer.decode.vocabulary import op_type
from stall_analyzer.model.model_parts import ModelPart, ModelParts
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.units import PS_PER_US
from stall_analyzer.signals.host.op_times import graph_ops

# Scopes that the runtime and the gradient put around those of the model: calls, loops, branches.
AROUND = pattern(
    r"(Stateful)?PartitionedCall(_\d+)?|gradient_tape(_\d+)?|(while|cond|if)(_\d+)?"
    r"|body|then|else|branch_executed|_\d+"
)
LAYER_DEPTH = 2  # the model and the layer in it
# oneDNN's and fused forms of an op are that op.
FORMS = pattern(r"^_(Mkl)?(Native)?(Fused)?")
# An op this short is mostly the executor's work for it: XLA would fuse several into one.
SMALL_PS = 10 * PS_PER_US
OUTSIDE = "(outside the layers)"


def model_parts(traces: Sequence[AlignedTrace]) -> ModelParts:
    """Over all traced steps, in the time of the threads that ran them."""
    layers, kinds = _Sum(), _Sum()
    small_ps = 0
    for trace in (aligned.trace for aligned in traces):
        totals = trace.totals
        for index in np.flatnonzero(graph_ops(trace)).tolist():
            spent, count = int(totals.self_ps[index]), int(totals.count[index])
            name = trace.names[index]
            layers.add(layer_of(name), spent, count)
            kinds.add(FORMS.sub("", op_type(name)), spent, count)
            small_ps += spent if spent < count * SMALL_PS else 0
    return ModelParts(layers.parts(), kinds.parts(), kinds.spent.total(), small_ps)


def layer_of(name: str) -> str:
    """`functional_1/dense_2`, `adam_1`, `compile_loss/mean_squared_error`."""
    *scopes, _ = name.rpartition(":")[0].split("/")
    own = [scope for scope in scopes if not AROUND.fullmatch(scope)]
    return "/".join(own[:LAYER_DEPTH]) or OUTSIDE


class _Sum:
    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()

    def add(self, name: str, spent: int, count: int) -> None:
        self.spent[name] += spent
        self._calls[name] += count

    def parts(self) -> tuple[ModelPart, ...]:
        """Costliest first."""
        return tuple(ModelPart(n, ps, self._calls[n]) for n, ps in self.spent.most_common() if ps)
