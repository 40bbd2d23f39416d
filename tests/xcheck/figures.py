"""Figures of one trace that two programs can both give: what is compared, under one name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

WITHIN = 0.01  # of the other's figure


class Figure(NamedTuple):
    subject: str  # "kernel time", "memory peak"
    of: str  # the kernel, the allocator, the device


@dataclass(frozen=True)
class Compared:
    trace: str
    figure: Figure
    ours: float
    theirs: float
    source: str  # which of XProf's outputs

    @property
    def agrees(self) -> bool:
        return abs(self.ours - self.theirs) <= WITHIN * abs(self.theirs)


Figures = dict[Figure, float]


def compare(trace: str, ours: Figures, theirs: Figures, source: str) -> list[Compared]:
    """What XProf gives; what we do not have counts as 0."""
    return [
        Compared(trace, figure, ours.get(figure, 0.0), value, source)
        for figure, value in theirs.items()
    ]
