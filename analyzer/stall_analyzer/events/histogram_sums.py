"""Histograms in event files, as far as they show that a layer is dead: sums over a tag's records.

A histogram is a tensor of doubles with a row for each bucket: its edges, and how many values lie
between them. Where all values are the same, both edges are that value.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from stall_analyzer.events.tensors import Tensor, floats_of
from stall_analyzer.model.event_log import HistogramSums


@dataclass
class HistogramReader:
    """All histograms of a run. Checksums are not verified: damage makes a layer look alive."""

    sums: dict[str, HistogramSums] = field(default_factory=dict)
    _last: dict[str, bytes] = field(default_factory=dict)

    def take(self, tag: str, tensor: Tensor) -> None:
        values = floats_of(tensor)
        if values is None or len(values) % 3:
            return  # some other format
        content = values.tobytes()
        are_zeros = _are_zeros(content)
        if are_zeros is None:
            return
        known = self.sums.get(tag, HistogramSums())
        self.sums[tag] = HistogramSums(
            records=known.records + 1,
            zero_run=known.zero_run + 1 if are_zeros else 0,
            same_run=known.same_run + 1 if content == self._last.get(tag) else 1,
        )
        self._last[tag] = content


def _are_zeros(content: bytes) -> bool | None:
    """Whether all values of a histogram are zero; None where it holds none."""
    found = None
    for left, right, count in struct.iter_unpack("=3d", content):
        if count > 0:
            if left or right:
                return False  # most often already at the first bucket
            found = True
    return found
