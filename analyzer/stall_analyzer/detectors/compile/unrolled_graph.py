"""A Python loop in the model was unrolled into a huge graph.

What it finds
A training graph in which the same op occurs many times under numbered names (MatMul, MatMul_1 …
MatMul_199), far more times than the model has variables. A Python loop over time steps, rows or
iterations ran while the step was traced.

Why it stalls
Every iteration of a Python loop is recorded, optimized and instantiated separately, forward and
backward. The cost grows with the number of iterations and is paid before the first step.

How it is measured
How many ops of the backward pass have the same name, apart from its number, compared with how many
variables were updated. The cost is the ledger's tracing and instantiation time in the
function's calls. The predicted saving assumes that part of that cost remains and that each step may
take up to three times as long, because a loop in the graph has overhead in each iteration.

Example
A recurrence over 200 time steps, written as a Python loop, had 2,695 nodes: 4.8 s of tracing and
2.9 s of instantiation. As a keras.layers.RNN it took 0.6 s and 0.4 s, but each step took 73 ms
instead of 26 ms.

What to do
Write the loop so that it stays a loop in the graph (keras.layers.RNN, tf.while_loop, tf.scan), or
vectorize it. To accumulate gradients over parts of a batch, give the optimizer
`gradient_accumulation_steps`. Unrolled graphs run faster per step: if you train for a long time
with tiny steps, keep the loop unrolled and accept the slow start.

Blind spots
Under XLA the ops have no events, so nothing is reported. Loops of fewer than 30 iterations and
loops without gradients are not reported either.
"""

from __future__ import annotations

import re

from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import counted, seconds
from stall_analyzer.model.patterns import pattern
from stall_analyzer.signals.compile.functions import FunctionSignals
from stall_analyzer.signals.signals import Signals

ID = "ST102"
BUCKET = "compile"

# What is left of tracing and instantiation when the loop's body is built once: from little, where
# the loop is nearly the whole model, to a third.
LEFT_LEAST = 0.05
LEFT_MOST = 0.35
# A loop in the graph launches its ops in every iteration: a step of tiny ops took 2.8 times as
# long.
SLOWER_STEPS = 3
# Names of recurrent layers and cells; for other loops an RNN layer is not suggested.
RECURRENT = pattern(r"rnn|lstm|gru|recurrent|(^|[/_ ])cell", re.IGNORECASE)


def check(signals: Signals) -> Finding | None:
    function = next((f for f in signals.functions if f.shape is not None), None)
    if function is None or function.shape is None or not function.shape.unrolled:
        return None
    shape = function.shape
    lost = sum(build.made_ps for build in function.builds)
    severity = severity_of(signals.share(lost), once_ps=lost)
    if severity is None:
        return None
    slower = (SLOWER_STEPS - 1) * function.usual_call_ps
    least = round((1 - LEFT_MOST) * lost) - slower * function.calls
    most = round((1 - LEFT_LEAST) * lost)
    pays_back = (
        f"; if that makes each step take {SLOWER_STEPS} times as long, the unrolled graph pays "
        f"for itself after about {counted(max(most // slower, 1), 'step')}"
        if slower
        else ""
    )
    return Finding(
        severity=severity if least > 0 else "note",
        title=f"A Python loop is unrolled into {shape.copies} copies of {_short(shape.copied)}",
        explanation=(
            f"The graph of {function.words} has {shape.nodes} nodes for "
            f"{counted(shape.updates, 'trained variable')}; {shape.copied} alone occurs "
            f"{shape.copies} times. Tracing and instantiating that graph took {seconds(lost)} of "
            f"the first epoch's {seconds(signals.window_ps)}. A loop that stays a loop is built "
            f"once but runs more slowly{pays_back}."
        ),
        change=_change(signals, function),
        lost_ps=lost,
        gain=Gain(max(least, 0), most),
        confidence=0.85,
        evidence=(
            *signals.evidence_of("compile.tracing", "tracing"),
            *signals.evidence_of("compile.instantiate", "instantiating the graph"),
        ),
    )


def _short(node: str) -> str:
    return "/".join(node.split("/")[-2:])


def _change(signals: Signals, function: FunctionSignals) -> Change:
    layers = signals.keras.layers if signals.keras is not None else ()
    unrolled = [layer for layer in layers if layer.get("unroll") is True]
    if unrolled:
        kind = unrolled[0]["class_name"]
        return Change(
            f"Let {unrolled[0]['name']} keep its loop: do not set unroll=True.",
            f"keras.layers.{kind}(units, unroll=True)",
            f"keras.layers.{kind}(units)",
        )
    kinds = [str(layer.get("class_name", "")) for layer in layers]
    if function.shape is not None and RECURRENT.search(" ".join([function.shape.copied, *kinds])):
        return Change(
            "Use a layer or an op that loops in the graph, or vectorize the loop.",
            "for t in range(n):\n    state = cell(x[:, t], state)",
            "state = keras.layers.RNN(cell)(x)  # or tf.scan, tf.while_loop",
        )
    return Change(
        "Do all iterations at once on one larger tensor, or let the loop run in the graph "
        "(tf.map_fn, tf.scan, tf.while_loop). To accumulate gradients over parts of a batch, give "
        "fit the small batches and set gradient_accumulation_steps in the optimizer.",
        "total = 0.0\nfor part in parts:\n    total += f(part)",
        "total = tf.reduce_sum(tf.map_fn(f, tf.stack(parts)))\n# or, to accumulate gradients\n"
        "keras.optimizers.Adam(gradient_accumulation_steps=n)",
    )
