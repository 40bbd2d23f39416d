"""Histograms in event files, as far as they show that a layer is dead: sums over a tag's records.

A histogram is a tensor of doubles with a row for each bucket: its edges, and how many values are
between them. If all values are the same, both edges are that value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tensorboard.compat.proto.types_pb2 import DT_DOUBLE

from stall_analyzer.events.tensors import Tensor, floats_of
from stall_analyzer.model.event_log import HistogramSums

_BUCKET = struct.Struct("<3d")


class HistogramReader:
    """All histograms of a run. Checksums are not verified: damage makes a layer look alive."""

    def __init__(self) -> None:
        self.sums: dict[str, HistogramSums] = {}
        self._last: dict[str, bytes] = {}

    def plain(self) -> list[list[object]]:
        """Everything as plain data, for JSON."""
        return [[tag, sums, self._last[tag].hex()] for tag, sums in self.sums.items()]

    @classmethod
    def of_plain(cls, plain: Sequence[tuple[str, Sequence[int], str]]) -> HistogramReader:
        reader = cls()
        for tag, sums, last in plain:
            reader.sums[tag], reader._last[tag] = HistogramSums(*sums), bytes.fromhex(last)
        return reader

    def take(self, tag: str, tensor: Tensor) -> None:
        content: bytes = tensor.tensor_content
        if tensor.dtype != DT_DOUBLE or not content:
            values = floats_of(tensor)
            content = b"" if values is None else values.tobytes()
        self.take_content(tag, content)

    def take_content(self, tag: str, content: bytes) -> None:
        """The rows of a histogram."""
        are_zeros = None if len(content) % _BUCKET.size else _are_zeros(content)
        if are_zeros is None:
            return  # another format, or no values at all
        self.go_on(tag, HistogramSums(1, zero_run=int(are_zeros), same_run=1), content)

    def add(self, later: HistogramReader) -> None:
        """Adds what another file continues with."""
        for tag, after in later.sums.items():
            self.go_on(tag, after, later._last[tag])

    def go_on(self, tag: str, after: HistogramSums, last: bytes) -> None:
        """Adds the sums of a tag's later histograms; `last` is the content of the last one."""
        before = self.sums.get(tag) or HistogramSums()
        goes_on = after.same_run == after.records and last == self._last.get(tag)
        self.sums[tag] = HistogramSums(
            records=before.records + after.records,
            zero_run=after.zero_run + before.zero_run * (after.zero_run == after.records),
            same_run=after.same_run + before.same_run * goes_on,
        )
        self._last[tag] = last


def _are_zeros(content: bytes) -> bool | None:
    """Whether all values of a histogram are zero; None if it has none."""
    found = None
    for left, right, count in _BUCKET.iter_unpack(content):
        if count > 0:
            if left or right:
                return False  # most often already at the first bucket
            found = True
    return found
