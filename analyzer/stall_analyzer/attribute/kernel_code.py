"""Code for the device: loaded, compiled from PTX, or autotuned, when a graph first runs on it.

CUDA loads its libraries and kernels when they are first used, the driver compiles those that the
build does not contain, and cuDNN and XLA time several ways to compute the same thing and keep the
fastest. No event names this. It shows as a first run of a graph that takes longer than later ones,
launching or computing: what it computed was thrown away.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.attribute.refine import (
    WARM_UP_FACTOR,
    WARM_UP_LATER_RUNS,
    WARM_UP_LEAST_PS,
    first_part,
)
from stall_analyzer.model.causes import codes
from stall_analyzer.model.columns import distinct, median
from stall_analyzer.model.intervals import Tiling, time_in
from stall_analyzer.model.timeline import TrainingThread

RUNNING = codes("compute.device", "host.dispatch")


def with_kernel_code(tiling: Tiling, training: TrainingThread) -> Tiling:
    """Takes the tiling of host and device together. A call counts until the next one begins,
    because kernels that it launched may outlast it."""
    calls = training.calls
    if len(calls.row) == 0:
        return tiling
    end = np.append(calls.start_ps[1:], tiling.bounds[-1])
    end = np.maximum(np.minimum(end, tiling.bounds[-1]), calls.start_ps)
    spent = time_in(tiling, calls.start_ps, end, RUNNING)
    for graph in distinct(calls.concrete[calls.traced & (calls.concrete >= 0)]):
        mine = np.flatnonzero(calls.concrete == graph)
        if len(mine) <= WARM_UP_LATER_RUNS or not calls.traced[mine[0]]:
            continue
        first, later = int(spent[mine[0]]), spent[mine[1:-1]]  # the last one may be incomplete
        usual = int(median(later))
        if first > WARM_UP_FACTOR * int(later.max()) + WARM_UP_LEAST_PS:
            begin, stop = int(calls.start_ps[mine[0]]), int(end[mine[0]])
            tiling = first_part(tiling, begin, stop, RUNNING, first - usual, "compile.kernels")
    return tiling
