"""Levels of detail: what a window shows at a given width, whatever the number of its intervals.

Intervals that begin in the same pixel are merged, so a row has at most one item per pixel.
The work is a binary search for each pixel and one pass over the visible part of a column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stall_analyzer.model.units import Bools, Float64s, Int64s


class Items(NamedTuple):
    """What to draw for one row, in order. `first` is the interval that an item begins with."""

    start: Int64s
    end: Int64s
    rank: Int64s  # of the longest
    size: Int64s  # how many intervals it represents
    first: Int64s


def merged(
    start: Int64s, end: Int64s, rank: Int64s, begin_ps: int, end_ps: int, pixel_ps: int
) -> Items:
    """The intervals in [begin_ps, end_ps) as items: single ones, or several of a pixel merged.

    A merged item lasts at least half a pixel, so that it can be seen; items do not overlap.
    """
    visible = slice(
        int(np.searchsorted(end, begin_ps, side="right")), int(np.searchsorted(start, end_ps))
    )
    start, end, rank = start[visible], end[visible], rank[visible]
    if len(start) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Items(nothing, nothing, nothing, nothing, nothing)
    # Pixels count from the window's zero and not from begin_ps, so that panning regroups nothing.
    edges = np.arange(begin_ps // pixel_ps, (end_ps - 1) // pixel_ps + 1) * pixel_ps
    first = np.concatenate([[0], np.searchsorted(start, edges)])
    first = first[np.diff(first, append=len(start)) > 0]
    size = np.diff(first, append=len(start))
    end, longest = end[first + size - 1], np.maximum.reduceat(rank, first)
    items = Items(start[first], end, longest, size, first + visible.start)
    return _wide_enough(items, pixel_ps)


def _wide_enough(items: Items, pixel_ps: int) -> Items:
    """Merged items that are too short to be seen grow inside their pixel; if an earlier item
    reaches into the pixel and leaves no room, they are merged into it."""
    start, end, rank, size, first = items
    half = (pixel_ps + 1) // 2
    short = (size > 1) & (end - start < half)
    pixel_end = (start // pixel_ps + 1) * pixel_ps
    start = np.where(short, np.minimum(start, pixel_end - half), start)
    crowded = short & (start < np.concatenate([[0], end[:-1]]))
    end = np.where(short & ~crowded, np.maximum(end, start + half), end)
    joined = np.flatnonzero(crowded)
    end[joined - 1] = end[joined]
    size[joined - 1] += size[joined]
    rank = rank.copy()
    rank[joined - 1] = np.maximum(rank[joined - 1], rank[joined])
    return Items(*(column[~crowded] for column in (start, end, rank, size, first)))


def thinned(at: Int64s, value: Float64s, begin_ps: int, end_ps: int, pixel_ps: int) -> Int64s:
    """Positions of the points that a curve needs: per pixel, the lowest, the highest and the first
    that is not a number; and the nearest points outside, so that the curve reaches the edges."""
    first = max(int(np.searchsorted(at, begin_ps)) - 1, 0)
    last = min(int(np.searchsorted(at, end_ps)) + 1, len(at))
    at, value = at[first:last], value[first:last]
    pixel = at // pixel_ps
    opens = np.flatnonzero(np.diff(pixel, prepend=-1))
    if len(at) <= 2 * len(opens):
        return np.arange(first, last)
    finite = np.isfinite(value)
    chosen = (
        _first_per_pixel(value == _spread(np.minimum, value, finite, np.inf, opens), opens),
        _first_per_pixel(value == _spread(np.maximum, value, finite, -np.inf, opens), opens),
        _first_per_pixel(~finite, opens),
    )
    return np.unique(np.concatenate([*chosen, [0, len(at) - 1]])) + first


def _spread(
    extreme: np.ufunc, value: Float64s, finite: Bools, otherwise: float, opens: Int64s
) -> Float64s:
    """The extreme of each pixel, at each of its points."""
    found = extreme.reduceat(np.where(finite, value, otherwise), opens)
    return np.repeat(found, np.diff(opens, append=len(value)))


def _first_per_pixel(wanted: Bools, opens: Int64s) -> Int64s:
    positions = np.flatnonzero(wanted)
    pixel = np.searchsorted(opens, positions, side="right")
    return positions[np.flatnonzero(np.diff(pixel, prepend=-1))]
