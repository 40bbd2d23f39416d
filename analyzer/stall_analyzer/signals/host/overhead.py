"""What the host does between one op, or one step, and the next.

A gap on the training thread is Python. Between two steps, a short gap is the training loop itself;
a long one is a callback, a sleep or the garbage collector, which longer calls would not remove. A
gap before an eager op is inside a step, and a graph would remove it, however long it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.model.causes import code, codes, codes_of_bucket
from stall_analyzer.model.columns import between
from stall_analyzer.model.intervals import among
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Step
from stall_analyzer.model.units import PS_PER_MS

# Keras's Python between two calls takes a fraction of a millisecond; on a slow and busy machine, a
# few milliseconds. Anything longer is something else.
SHORT_GAP_PS = 5 * PS_PER_MS


@dataclass(frozen=True)
class Overhead:
    """From the beginning of the first of some steps to the end of the last."""

    steps: int
    span_ps: int
    dispatch_ps: int
    eager_ps: int
    short_gaps_ps: int  # in Python; long ones are something else
    inner_gaps_ps: int  # before an eager op of a step, short or long
    instruments_ps: int = 0  # logging and tracing, not part of the others

    @property
    def own_span_ps(self) -> int:
        """The span without logging and tracing."""
        return self.span_ps - self.instruments_ps


def step_overhead(ledger: Ledger, steps: Sequence[Step]) -> Overhead:
    if not steps or len(ledger.cause) == 0:
        return Overhead(0, 0, 0, 0, 0, 0)
    begin, end = steps[0].start_ps, steps[-1].end_ps
    bounds = np.clip(ledger.bounds_ps, begin, end)
    lengths = between(bounds)
    python = ledger.cause == code("host.python")
    short = ledger.lengths_ps <= SHORT_GAP_PS
    fetch = among(ledger.cause, codes_of_bucket("input"))
    op = among(ledger.cause, codes("host.eager", "compute.eager_op"))
    # Gaps before an op, and after another op or the fetch of the batch.
    inner = np.zeros(len(python), dtype=np.bool_)
    inner[1:-1] = python[1:-1] & op[2:] & (op | fetch)[:-2]
    return Overhead(
        steps=len(steps),
        span_ps=end - begin,
        dispatch_ps=int(lengths[ledger.cause == code("host.dispatch")].sum()),
        eager_ps=int(lengths[ledger.cause == code("host.eager")].sum()),
        short_gaps_ps=int(lengths[python & short].sum()),
        inner_gaps_ps=int(lengths[inner].sum()),
        instruments_ps=int(lengths[among(ledger.cause, codes_of_bucket("profiler"))].sum()),
    )
