"""Histograms in event files, as far as they show that a layer is dead: sums over a tag's records.

A histogram is a tensor of doubles with a row for each bucket: its edges, and how many values lie
between them. Where all values are the same, both edges are that value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stall_analyzer.events.tensors import floats_of
from stall_analyzer.model.event_log import HistogramSums


@dataclass
class HistogramReader:
    """All histograms of a run. Checksums are not verified: damage makes a layer look alive."""

    _sums: dict[str, HistogramSums] = field(default_factory=dict)
    _last: dict[str, bytes] = field(default_factory=dict)

    def take(self, tag: str, data: bytes, start: int, end: int) -> None:
        values = floats_of(data, start, end)
        if values is None or len(values) % 3:
            return  # some other format
        left, right, count = values.reshape(-1, 3).T
        held = count > 0
        if not held.any():
            return  # of no values at all
        are_zeros = not (left[held].any() or right[held].any())
        known = self._sums.get(tag, HistogramSums())
        content = values.tobytes()
        self._sums[tag] = HistogramSums(
            records=known.records + 1,
            zero_run=known.zero_run + 1 if are_zeros else 0,
            same_run=known.same_run + 1 if content == self._last.get(tag) else 1,
        )
        self._last[tag] = content

    def result(self) -> dict[str, HistogramSums]:
        return self._sums
