"""Getting a big graph ready to run takes a large part of the first epoch.

What it finds
A training function whose graph, once traced, took a large part of the first epoch to optimize and
instantiate, with no unrolled loop to explain its size.

Why it stalls
Before the first step, TensorFlow rewrites the graph (Grappler), places its ops on devices and
creates a kernel for each node. The cost grows with the number of nodes, and training waits for it.

How it is measured
The ledger's instantiation time in first calls: the time from the start of a graph's first execution
to its launch, during which no event names the work.

Example
A model of 70 dense layers, 965 nodes: 0.44 s of a first epoch of 1.5 s.

What to do
Nothing, if you train for a long time: it happens once. For many short runs, use fewer and larger
layers. Turning Grappler off cut the time to a third in our test, but the steps became slower.

Blind spots
Optimization and instantiation have no events of their own and cannot be told apart.
"""

from __future__ import annotations

from stall_analyzer.detectors.severity import ACT_SHARE
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.compile.functions import FunctionSignals
from stall_analyzer.signals.signals import Signals

ID = "ST103"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    function = max(signals.functions, key=_lost_ps, default=None)
    if function is None or (function.shape is not None and function.shape.unrolled):
        return None
    lost = _lost_ps(function)
    if signals.share(lost) < ACT_SHARE:
        return None
    size = f" of {function.shape.nodes} nodes" if function.shape is not None else ""
    return Finding(
        severity="note",  # no known change saves it without a cost elsewhere
        title=f"Preparing the graph of {function.words} takes {seconds(lost)}, once",
        explanation=(
            f"After tracing, TensorFlow spent {signals.with_share(lost)} optimizing and "
            f"instantiating a graph{size}. The cost grows with the number of ops. Later epochs do "
            "not pay for it."
        ),
        change=Change(
            "Do nothing if you train for more than a few epochs. For many short runs, make the "
            "graph smaller: fewer and larger layers."
        ),
        lost_ps=lost,
        confidence=0.8,
        evidence=signals.evidence_of("compile.instantiate", "instantiating the graph"),
    )


def _lost_ps(function: FunctionSignals) -> int:
    return function.first.instantiate_ps if function.first is not None else 0
