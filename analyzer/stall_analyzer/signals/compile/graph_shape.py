"""How big the training graph is, from the names of the ops that ran.

TensorFlow numbers ops of the same name, so a Python loop that was unrolled shows as `MatMul`,
`MatMul_1` … `MatMul_199`. Layers of the same kind are numbered too, but each has its own variables,
and each variable an update: copies far beyond the number of updates are not layers. Only the
backward pass is counted, because functions of the input pipeline have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stall_analyzer.decode.vocabulary import UPDATE_OPS, op_type
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace

_NUMBER = pattern(r"_\d+")
_BACKWARD = pattern(r"gradient_tape/|gradients/")
# A loop shorter than this is cheap to unroll. A model has one or two nodes of the same name for
# each of its variables, so several times as many copies are not layers.
UNROLLED_COPIES = 30
COPIES_PER_UPDATE = 4


@dataclass(frozen=True)
class GraphShape:
    """Nodes that ran, by name. XLA hides them."""

    nodes: int
    updates: int  # nodes that update a variable: one for each trained variable
    copies: int  # of the node of the backward pass that occurs most often
    copied: str  # what it is the gradient of, with # for the numbers

    @property
    def unrolled(self) -> bool:
        return self.copies >= max(UNROLLED_COPIES, COPIES_PER_UPDATE * self.updates)


def graph_shape(traces: Sequence[AlignedTrace]) -> GraphShape | None:
    """None where no node of a training graph can be seen."""
    nodes = {name for aligned in traces for name in _nodes(aligned)}
    updates = {name for name in nodes if op_type(name) in UPDATE_OPS}
    if not updates:
        return None
    families = Counter(_NUMBER.sub("_#", name) for name in nodes if _BACKWARD.search(name))
    copied, copies = max(families.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return GraphShape(len(nodes), len(updates), copies, _forward(copied))


def _nodes(aligned: AlignedTrace) -> list[str]:
    """Names of the form `scope/node:Op`, without those that TensorFlow adds (`_send_…`)."""
    return [
        name
        for name, count in zip(aligned.trace.names, aligned.trace.totals.count, strict=True)
        if count and op_type(name).isidentifier() and not name.startswith("_")
    ]


def _forward(name: str) -> str:
    """`Call/gradient_tape/model/cell/MatMul/MatMul_#:MatMul` -> `model/cell/MatMul`."""
    _, _, node = name.rpartition(":")[0].rpartition("gradient")
    scopes = node.split("/")[1:]
    return "/".join(scopes[:-1] or scopes)
