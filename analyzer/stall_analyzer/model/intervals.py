"""Arithmetic on half-open intervals held in numpy columns.

A *tiling* is (bounds, labels): labels[i] holds on [bounds[i], bounds[i + 1]). Tilings never overlap
and never leave a hole, so sums over them are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stall_analyzer.model.columns import between, distinct, rows_where
from stall_analyzer.model.units import Bools, Float64s, Int32s, Int64s, UInt8s

NOTHING = -1  # the label of an instant that no interval covers
MOST_LABELS = 256  # codes of causes are kept in bytes
_YES = np.ones(1, dtype=np.bool_)


class Tiling(NamedTuple):
    bounds: Int64s
    labels: Int64s


class Layer(NamedTuple):
    """Intervals with one label, for `paint`."""

    start: Int64s
    end: Int64s
    label: int


def union(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The same instants as disjoint intervals in order; empty ones vanish."""
    if len(start) == 0:
        return start, end
    full = end > start
    if not full.all():
        start, end = start[full], end[full]
    if (start[1:] > end[:-1]).all():  # already disjoint, or fewer than two
        return start, end
    order = start.argsort(kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    opens = start[1:] > end[:-1]
    return start[np.concatenate([_YES, opens])], end[np.concatenate([opens, _YES])]


def total(start: Int64s, end: Int64s) -> int:
    """Length of the union."""
    merged_start, merged_end = union(start, end)
    return int((merged_end - merged_start).sum())


def paint(begin: int, end: int, layers: Sequence[Layer], default: int = NOTHING) -> Tiling:
    """Tile [begin, end): each instant gets the label of the first layer that covers it."""
    layers = [layer for layer in layers if len(layer.start)]
    merged = [union(_clipped(la.start, begin, end), _clipped(la.end, begin, end)) for la in layers]
    bounds = distinct(np.array([begin, end], dtype=np.int64), *(x for m in merged for x in m))
    labels = np.full(max(len(bounds) - 1, 0), default, dtype=np.int64)
    for (starts, ends), layer in zip(reversed(merged), reversed(layers), strict=True):
        labels[covered(bounds[:-1], starts, ends)] = layer.label
    return simplify(Tiling(bounds, labels))


def covered(at: Int64s, start: Int64s, end: Int64s) -> Bools:
    """Which instants `at` are in one of the disjoint, ordered intervals."""
    if len(start) == 0:
        return np.zeros(len(at), dtype=np.bool_)
    index = start.searchsorted(at, "right") - 1
    return (index >= 0) & (at < end[index])  # index -1, the last one, does not count


def enclosing(start: Int64s, end: Int64s, at: Int64s) -> Int32s:
    """Which of the ordered, disjoint intervals contains each instant, or -1."""
    if len(start) == 0:
        return np.full(len(at), -1, dtype=np.int32)
    index = start.searchsorted(at, "right") - 1
    return np.where(at < end[index], index, -1).astype(np.int32)  # -1 is the last one, and stays -1


def difference(
    start: Int64s, end: Int64s, cut_start: Int64s, cut_end: Int64s
) -> tuple[Int64s, Int64s]:
    """The union of the first intervals without the second."""
    if len(start) == 0:
        return start, end
    tiling = paint(
        int(start.min()), int(end.max()), [Layer(cut_start, cut_end, 0), Layer(start, end, 1)]
    )
    left = tiling.labels == 1
    return tiling.bounds[:-1][left], tiling.bounds[1:][left]


def label_at(tiling: Tiling, at: Int64s) -> Int64s:
    """The label at each instant; instants outside the tiling are NOTHING."""
    bounds, labels = tiling
    if len(labels) == 0:
        return np.full(len(at), NOTHING, dtype=np.int64)
    inside = (at >= bounds[0]) & (at < bounds[-1])
    if inside.all():
        return labels[bounds.searchsorted(at, "right") - 1]
    found = np.full(len(at), NOTHING, dtype=np.int64)
    found[inside] = labels[bounds.searchsorted(at[inside], "right") - 1]
    return found


def among(labels: Int64s | UInt8s, wanted: Int64s) -> Bools:
    """Which labels are wanted. (np.isin takes several times as long on codes of causes.)"""
    table = np.zeros(MOST_LABELS, dtype=np.bool_)
    table[wanted] = True
    return table[labels]


def time_in(tiling: Tiling, start: Int64s, end: Int64s, wanted: Int64s) -> Int64s:
    """How much of the wanted codes is in each interval."""
    return times_in(tiling, start, end, [wanted])[0]


def times_in(tiling: Tiling, start: Int64s, end: Int64s, groups: Sequence[Int64s]) -> list[Int64s]:
    """The same for several groups of codes."""
    bounds, labels = tiling
    if len(labels) == 0 or len(start) == 0:
        return [np.zeros(len(start), np.int64) for _ in groups]
    lengths = between(bounds)
    # Both ends of all intervals at once: the tile that each is in, and how far.
    at = _clipped(np.concatenate([start, end]), bounds[0], bounds[-1])
    tile = np.minimum(bounds.searchsorted(at, "right"), len(labels)) - 1
    inside = at - bounds[tile]

    def time_of(wanted: Int64s) -> Int64s:
        mine = among(labels, wanted)
        own = lengths * mine
        until: Int64s = (own.cumsum() - own)[tile] + inside * mine[tile]
        return until[len(start) :] - until[: len(start)]

    return [time_of(wanted) for wanted in groups]


def _clipped(at: Int64s, begin: int, end: int) -> Int64s:
    """Faster than np.clip, which first checks what the type can hold."""
    return np.minimum(np.maximum(at, begin), end)


def covered_time(begin: Int64s, finish: Int64s, start: Int64s, end: Int64s) -> Float64s:
    """How much of each stretch is in the disjoint, ordered intervals."""
    if len(start) == 0:
        return np.zeros(len(begin))
    bounds = np.stack([start, end], axis=1).ravel()
    inside: Bools = np.arange(len(bounds) - 1) % 2 == 0
    elapsed = np.concatenate([[0], (between(bounds) * inside).cumsum()])
    until = np.interp(finish, bounds, elapsed)
    return np.asarray(until - np.interp(begin, bounds, elapsed))


def overlay(top: Tiling, below: Tiling, hole: int = NOTHING) -> Tiling:
    """The labels of `top` and, where it has a hole, those of the tiling below."""
    bounds = distinct(top.bounds, below.bounds)
    above = label_at(top, bounds[:-1])
    return simplify(Tiling(bounds, np.where(above == hole, label_at(below, bounds[:-1]), above)))


def refine(tiling: Tiling, cuts: Int64s) -> Tiling:
    """The same tiling with extra bounds at `cuts`."""
    inner = cuts[(cuts > tiling.bounds[0]) & (cuts < tiling.bounds[-1])]
    if len(inner) == 0:
        return tiling
    bounds = distinct(tiling.bounds, inner)
    return Tiling(bounds, label_at(tiling, bounds[:-1]))


def simplify(tiling: Tiling) -> Tiling:
    """Merge neighbors with the same label; drop empty tiles."""
    bounds, labels = tiling
    full = bounds[1:] > bounds[:-1]
    starts, labels = bounds[:-1][full], labels[full]
    if len(labels) == 0:
        return Tiling(bounds[[0, -1]] if len(bounds) else bounds, labels)
    fresh = np.concatenate([_YES, labels[1:] != labels[:-1]])
    return Tiling(np.concatenate([starts[fresh], bounds[-1:]]), labels[fresh])


def stack(start: Int64s, end: Int64s, most: int) -> Int64s:
    """For intervals in order of their start, the first row in which each finds room; NOTHING where
    all `most` rows are taken."""
    free_from: list[int] = []
    rows = np.full(len(start), NOTHING, dtype=np.int64)
    for i, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        row = next((r for r, at in enumerate(free_from) if at <= begin), len(free_from))
        if row == most:
            continue
        free_from[row : row + 1] = [finish]
        rows[i] = row
    return rows


class Segments(NamedTuple):
    """Pieces of lines: `owner` is the innermost event of its line during the piece."""

    start: Int64s
    end: Int64s
    owner: Int32s


def innermost(start: Int64s, duration: Int64s, parent: Int32s, line: Int32s) -> Segments:
    """Cut each line into pieces owned by the innermost event; gaps between roots are left out.

    Events are ordered by line and start, parents before children, and nest properly, so after an
    event's start the innermost one is itself, and after its end its parent.
    """
    rows = rows_where(duration > 0).astype(np.int32)
    if len(rows) == 0:
        empty = np.empty(0, dtype=np.int64)
        return Segments(empty, empty, np.empty(0, dtype=np.int32))
    begin, its_line = start[rows], line[rows]
    count = len(rows)
    time = np.concatenate([begin, begin + duration[rows]])
    owner = np.concatenate([rows, parent[rows]])
    # At one instant: first ends, innermost first, then starts, outermost first.
    rank = np.concatenate([np.arange(count, 2 * count), np.arange(count)[::-1]])
    lines = np.concatenate([its_line, its_line])
    order = np.lexsort((rank, time, lines))
    time, owner, lines = time[order], owner[order], lines[order]
    keep = (owner[:-1] >= 0) & (time[1:] > time[:-1]) & (lines[1:] == lines[:-1])
    return Segments(time[:-1][keep], time[1:][keep], owner[:-1][keep])


def inherit(own: Int64s, parent: Int32s) -> Int64s:
    """Each event's own label or, if it has none, that of the nearest ancestor with one."""
    nearest = np.arange(len(own))
    rows = rows_where((own == NOTHING) & (parent >= 0))
    nearest[rows] = parent[rows]
    # Each round goes twice as far up as the one before, so deep nesting stays cheap.
    while len(rows):
        further = nearest[nearest[rows]]
        moved = further != nearest[rows]
        nearest[rows] = further
        rows = rows[moved]
    return own[nearest]
