"""When each host was recorded, by a profile or by its books, and when all of them were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.model.intervals import difference, total, union
from stall_analyzer.model.timeline import AlignedTrace, Timeline
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.input.input_pipeline import Spans


def covered_spans(traces: Sequence[AlignedTrace]) -> Mapping[str, Spans]:
    """Disjoint stretches of the window that were profiled, per host."""
    found: dict[str, list[Spans]] = {}
    for aligned in traces:
        begin, end = (np.array([ps]) for ps in aligned.covered_ps)
        found.setdefault(aligned.host, []).append((begin, end))
    return {host: _together(parts) for host, parts in found.items()}


def recorded_spans(timeline: Timeline) -> Mapping[str, Spans]:
    """The same, including the stretches that books cover."""
    found = {host: [spans] for host, spans in covered_spans(timeline.traces).items()}
    start_ns, duration_ps = timeline.window.start_unix_ns, timeline.window.duration_ps
    for capture in timeline.events.captures if timeline.events is not None else ():
        if capture.books is not None and start_ns is not None:
            rows = capture.books.begin_ns, capture.books.end_ns
            begin, end = (np.clip((ns - start_ns) * PS_PER_NS, 0, duration_ps) for ns in rows)
            found.setdefault(capture.trace_name, []).append((begin, end))
    return {host: _together(parts) for host, parts in found.items()}


def covered_by_all_ps(spans: Mapping[str, Spans]) -> int:
    if not spans:
        return 0
    first, *others = spans.values()
    missed = [difference(*first, *other) for other in others]
    start = np.concatenate([begin for begin, _ in missed]) if missed else first[0][:0]
    end = np.concatenate([finish for _, finish in missed]) if missed else first[0][:0]
    return total(*first) - total(start, end)


def _together(parts: Sequence[Spans]) -> Spans:
    begins, ends = (np.concatenate(times) for times in zip(*parts, strict=True))
    return union(begins, ends)
