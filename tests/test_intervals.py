"""Interval arithmetic, checked instant by instant."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.model.columns import distinct
from stall_analyzer.model.intervals import (
    NOTHING,
    Layer,
    Tiling,
    covered,
    difference,
    enclosing,
    inherit,
    innermost,
    label_at,
    overlay,
    paint,
    refine,
    simplify,
    stack,
    time_in,
    total,
    union,
)

END = 40
interval = st.tuples(st.integers(0, END), st.integers(0, END)).map(sorted)
intervals = st.lists(interval, max_size=8)
INSTANTS = np.arange(END)


def columns(pairs: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([a for a, _ in pairs], dtype=np.int64)
    return start, np.array([b for _, b in pairs], dtype=np.int64)


def instants(pairs: list[list[int]]) -> set[int]:
    return {at for a, b in pairs for at in range(a, b)}


def tilings(labels: st.SearchStrategy[int]) -> st.SearchStrategy[Tiling]:
    def build(cuts: list[int], values: list[int]) -> Tiling:
        bounds = np.array(sorted({0, END, *cuts}), dtype=np.int64)
        return Tiling(bounds, np.array(values[: len(bounds) - 1], dtype=np.int64))

    return st.builds(
        build, st.lists(st.integers(1, END - 1), max_size=9), st.lists(labels, min_size=10)
    )


@given(intervals)
def test_a_union_has_the_same_instants_in_disjoint_order(pairs: list[list[int]]) -> None:
    start, end = union(*columns(pairs))
    assert (end > start).all() and (start[1:] > end[:-1]).all()
    assert set(INSTANTS[covered(INSTANTS, start, end)]) == instants(pairs)
    assert total(*columns(pairs)) == len(instants(pairs))


@given(intervals, intervals)
def test_a_difference_has_what_only_the_first_has(
    keep: list[list[int]], cut: list[list[int]]
) -> None:
    start, end = difference(*columns(keep), *columns(cut))
    assert set(INSTANTS[covered(INSTANTS, start, end)]) == instants(keep) - instants(cut)


@given(st.lists(intervals, max_size=4))
def test_paint_tiles_its_range_and_the_first_layer_wins(layers: list[list[list[int]]]) -> None:
    tiling = paint(5, 30, [Layer(*columns(pairs), i) for i, pairs in enumerate(layers)])
    assert tiling.bounds[0] == 5 and tiling.bounds[-1] == 30
    assert (np.diff(tiling.bounds) > 0).all()
    for at in range(5, 30):
        expected = next((i for i, p in enumerate(layers) if at in instants(p)), NOTHING)
        assert label_at(tiling, np.array([at]))[0] == expected


@given(tilings(st.integers(0, 3)), st.lists(st.integers(-5, END + 5), max_size=6))
def test_cutting_and_joining_tiles_changes_no_label(tiling: Tiling, cuts: list[int]) -> None:
    before = label_at(tiling, INSTANTS)
    finer = refine(tiling, np.array(cuts, dtype=np.int64))
    assert (label_at(finer, INSTANTS) == before).all()
    coarser = simplify(finer)
    assert (label_at(coarser, INSTANTS) == before).all()
    assert (coarser.labels[1:] != coarser.labels[:-1]).all()


@given(tilings(st.integers(NOTHING, 3)), tilings(st.integers(0, 3)))
def test_an_overlay_shows_what_is_below_only_in_its_gaps(top: Tiling, below: Tiling) -> None:
    above = label_at(top, INSTANTS)
    expected = np.where(above == NOTHING, label_at(below, INSTANTS), above)
    assert (label_at(overlay(top, below), INSTANTS) == expected).all()


@given(intervals)
def test_an_instant_lies_in_the_interval_that_encloses_it(pairs: list[list[int]]) -> None:
    start, end = union(*columns(pairs))
    for at, index in zip(INSTANTS, enclosing(start, end, INSTANTS), strict=True):
        assert start[index] <= at < end[index] if index >= 0 else at not in instants(pairs)


@given(tilings(st.integers(0, 3)), interval)
def test_time_in_counts_the_wanted_instants(tiling: Tiling, span: list[int]) -> None:
    start, end = np.array([span[0]]), np.array([span[1]])
    labels = label_at(tiling, INSTANTS)[span[0] : span[1]]
    expected = int(np.isin(labels, [1, 3]).sum())
    assert time_in(tiling, start, end, np.array([1, 3]))[0] == expected


@given(st.lists(st.lists(st.integers(-9, 9)), min_size=1, max_size=3))
def test_distinct_values_come_in_order(lists: list[list[int]]) -> None:
    arrays = [np.array(values, dtype=np.int64) for values in lists]
    assert list(distinct(*arrays)) == sorted({v for values in lists for v in values})


def test_the_innermost_event_owns_each_piece_of_its_line() -> None:
    #        0: ----------        3: --      (another line)
    #        1:  --  2: ---
    start = np.array([0, 1, 6, 2], dtype=np.int64)
    duration = np.array([10, 2, 4, 2], dtype=np.int64)
    parent = np.array([-1, 0, 0, -1], dtype=np.int32)
    line = np.array([0, 0, 0, 1], dtype=np.int32)
    pieces = innermost(start, duration, parent, line)
    found = sorted(zip(pieces.start, pieces.end, pieces.owner, strict=True))
    assert found == [(0, 1, 0), (1, 3, 1), (2, 4, 3), (3, 6, 0), (6, 10, 2)]


def test_pieces_leave_out_the_gaps_between_events() -> None:
    start, duration = np.array([0, 5], dtype=np.int64), np.array([2, 0], dtype=np.int64)
    parent = np.array([-1, -1], dtype=np.int32)
    pieces = innermost(start, duration, parent, np.zeros(2, dtype=np.int32))
    assert list(pieces.start) == [0] and list(pieces.end) == [2]


def test_a_label_is_inherited_from_the_nearest_ancestor_that_has_one() -> None:
    own = np.array([7, NOTHING, NOTHING, 3, NOTHING, NOTHING])
    parent = np.array([-1, 0, 1, 2, 3, -1], dtype=np.int32)
    assert list(inherit(own, parent)) == [7, 7, 7, 3, 3, NOTHING]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12), st.integers(1, 3))
def test_stacked_intervals_do_not_overlap_in_a_row(spans: list[tuple[int, int]], most: int) -> None:
    spans.sort()
    start = np.array([begin for begin, _ in spans], dtype=np.int64)
    end = np.array([begin + length for begin, length in spans], dtype=np.int64)
    rows = stack(start, end, most)
    for row in range(most):
        assert (start[rows == row][1:] >= end[rows == row][:-1]).all()
    for left_out in np.flatnonzero(rows == NOTHING):
        at = start[left_out]
        assert np.sum((rows != NOTHING) & (start <= at) & (end > at)) == most
