"""When each host was profiled, and when all of them were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.model.intervals import difference, total, union
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.signals.input.input_pipeline import Spans


def covered_spans(traces: Sequence[AlignedTrace]) -> Mapping[str, Spans]:
    """Disjoint stretches of the window, per host."""
    hosts = dict.fromkeys(aligned.host for aligned in traces)
    return {host: _spans([a for a in traces if a.host == host]) for host in hosts}


def covered_by_all_ps(spans: Mapping[str, Spans]) -> int:
    if not spans:
        return 0
    first, *others = spans.values()
    missed = [difference(*first, *other) for other in others]
    start = np.concatenate([begin for begin, _ in missed]) if missed else first[0][:0]
    end = np.concatenate([finish for _, finish in missed]) if missed else first[0][:0]
    return total(*first) - total(start, end)


def _spans(traces: Sequence[AlignedTrace]) -> Spans:
    bounds = np.array([aligned.covered_ps for aligned in traces], dtype=np.int64)
    return union(bounds[:, 0], bounds[:, 1])
