"""Bars and sparklines made of characters, and their replacements where only ASCII can be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

Name = TypeVar("Name", bound=str)

EIGHTHS = " ▏▎▍▌▋▊▉█"
LEVELS = "▁▂▃▄▅▆▇█"

# Each is replaced by one character, so that columns stay aligned.
ASCII = str.maketrans("▏▎▍▌▋▊▉█▁▂▃▄▅▆▇─│·•…–—×µ±", "    ####_..--==-|-*.--xu~")


def bar(part: int, whole: int, width: int) -> str:
    """`part` of `whole` as a bar of at most `width` cells, exact to an eighth of a cell."""
    if part <= 0 or whole <= 0:
        return ""
    eighths = max(1, round(8 * width * min(part, whole) / whole))
    full, rest = divmod(eighths, 8)
    return EIGHTHS[8] * full + (EIGHTHS[rest] if rest else "")


def sparkline(values: Sequence[int], width: int) -> list[tuple[str, int]]:
    """(cell, index of the value it shows): with more values than cells, the largest of each group.

    Heights are linear from zero, so that a step twice as long looks twice as tall.
    """
    cells = min(len(values), max(width, 1))
    edges = [len(values) * cell // cells for cell in range(cells + 1)] if cells else []
    shown = [max(range(*group), key=values.__getitem__) for group in pairwise(edges)]
    tallest = max((values[index] for index in shown), default=0) or 1
    return [(LEVELS[min(7, 8 * values[index] // tallest)], index) for index in shown]


def cells_per_part(parts_ps: Mapping[Name, int], width: int) -> dict[Name, int]:
    """Divides `width` cells in proportion (largest remainder), so that a row is always full."""
    whole = sum(parts_ps.values())
    if whole <= 0:
        return {}
    exact = {name: width * ps / whole for name, ps in parts_ps.items() if ps > 0}
    cells = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: cells[name] - exact[name])
    for name in by_remainder[: width - sum(cells.values())]:
        cells[name] += 1
    return {name: count for name, count in cells.items() if count}
