"""Levels of detail: few items, however many intervals there are, and none that is wrong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.chart.chart_columns import Names, lane_of, name_of_rank, rank_of
from stall_analyzer.chart.detail import Items, merged, thinned
from stall_analyzer.model.units import Float64s, Int64s

gaps_and_lengths = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 7, 200]), st.sampled_from([1, 2, 5, 40, 900])), max_size=60
)
pixel_sizes = st.sampled_from([1, 2, 3, 10, 11, 64, 1000])


def row_of(parts: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    """Intervals of a row, each as the gap before it and its length."""
    start, end, at = [], [], 0
    for gap, length in parts:
        start.append(at + gap)
        at += gap + length
        end.append(at)
    return np.array(start, dtype=np.int64), np.array(end, dtype=np.int64)


def shown(start: Int64s, end: Int64s, pixel: int, begin: int = 0, stop: int | None = None) -> Items:
    names = np.arange(len(start))
    last = int(end[-1]) if len(end) else 1
    return merged(start, end, rank_of(start, end, names), begin, stop or last, pixel)


@given(gaps_and_lengths, pixel_sizes)
def test_items_keep_order_and_never_overlap(parts: list[tuple[int, int]], pixel: int) -> None:
    items = shown(*row_of(parts), pixel)
    assert (items.end > items.start).all()
    assert (items.start[1:] >= items.end[:-1]).all()


@given(gaps_and_lengths, pixel_sizes)
def test_no_interval_is_lost(parts: list[tuple[int, int]], pixel: int) -> None:
    start, end = row_of(parts)
    items = shown(start, end, pixel)
    assert items.size.sum() == len(start)
    assert items.first.tolist() == (np.cumsum(items.size) - items.size).tolist()
    for first, size, begin, stop in zip(
        items.first, items.size, items.start, items.end, strict=True
    ):
        assert begin <= start[first]
        assert end[first + size - 1] <= stop


@given(gaps_and_lengths, pixel_sizes)
def test_nothing_is_shorter_than_half_a_pixel_unless_alone(
    parts: list[tuple[int, int]], pixel: int
) -> None:
    items = shown(*row_of(parts), pixel)
    several = items.size > 1
    assert (2 * (items.end - items.start)[several] >= pixel).all()


@given(gaps_and_lengths, pixel_sizes)
def test_a_single_interval_keeps_its_exact_place(parts: list[tuple[int, int]], pixel: int) -> None:
    start, end = row_of(parts)
    items = shown(start, end, pixel)
    alone = items.size == 1
    assert items.start[alone].tolist() == start[items.first[alone]].tolist()
    assert items.end[alone].tolist() == end[items.first[alone]].tolist()


@given(gaps_and_lengths, pixel_sizes)
def test_a_row_needs_an_item_per_pixel_at_most(parts: list[tuple[int, int]], pixel: int) -> None:
    start, end = row_of(parts)
    pixels = -(-int(end[-1]) // pixel) if len(end) else 0
    assert len(shown(start, end, pixel).start) <= pixels + 2


@given(gaps_and_lengths, pixel_sizes)
def test_a_merged_item_is_off_by_less_than_a_pixel(
    parts: list[tuple[int, int]], pixel: int
) -> None:
    start, end = row_of(parts)
    items = shown(start, end, pixel)
    assert (start[items.first] - items.start < pixel).all()
    assert (items.end - end[items.first + items.size - 1] < pixel).all()


@given(st.lists(st.sampled_from([1, 2, 5, 40, 900]), min_size=1, max_size=60), pixel_sizes)
def test_what_tiles_the_window_still_tiles_it(lengths: list[int], pixel: int) -> None:
    items = shown(*row_of([(0, length) for length in lengths]), pixel)
    assert items.start[0] == 0
    assert items.end[:-1].tolist() == items.start[1:].tolist()
    assert sum(lengths) <= items.end[-1] < sum(lengths) + pixel


def test_an_item_is_named_by_the_longest_of_its_intervals() -> None:
    start, end = row_of([(0, 1_000), (0, 9_000), (0, 2_000)])
    items = shown(start, end, pixel=1_000_000)
    assert items.size.tolist() == [3]
    assert name_of_rank(items.rank).tolist() == [1]


def test_zoomed_in_every_interval_is_itself() -> None:
    start, end = row_of([(5, 20)] * 100)
    items = shown(start, end, pixel=10)
    assert items.start.tolist() == start.tolist()
    assert items.end.tolist() == end.tolist()


def test_a_window_shows_what_reaches_into_it_and_nothing_else() -> None:
    start, end = row_of([(0, 100), (100, 100), (100, 100)])  # 0-100, 200-300, 400-500
    items = shown(start, end, 1, begin=50, stop=201)
    assert items.start.tolist() == [0, 200]
    assert shown(start, end, 1, begin=100, stop=200).start.tolist() == []


def test_panning_regroups_nothing() -> None:
    start, end = row_of([(3, 4)] * 1000)
    here = shown(start, end, 50, begin=1000, stop=3000)
    there = shown(start, end, 50, begin=1010, stop=3010)
    both = set(here.start.tolist()) & set(there.start.tolist())
    assert len(both) >= len(here.start) - 2


# ---------------------------------------------------------------- lanes


def test_two_sessions_that_saw_the_same_time_do_not_overlap() -> None:
    start = np.array([0, 5, 50])
    end = np.array([10, 20, 60])
    lane = lane_of(("x", "x", "training"), 100, start, end, np.zeros(3, dtype=np.int64))
    assert lane.start_ps.tolist() == [0, 10, 50]
    assert lane.end_ps.tolist() == [10, 20, 60]


def test_a_lane_ends_with_the_window_and_sorts_its_rows() -> None:
    start, end = np.array([90, -10, 40, 200]), np.array([120, 10, 50, 210])
    row = np.array([1, 0, 1, 0])
    lane = lane_of(("x", "x", "training"), 100, start, end, np.arange(4), row)
    assert lane.rows.tolist() == [0, 1, 3]
    assert lane.start_ps.tolist() == [0, 40, 90]
    assert lane.end_ps.tolist() == [10, 50, 100]
    assert name_of_rank(lane.rank).tolist() == [1, 2, 0]


def test_long_names_are_cut_and_counted_once() -> None:
    names = Names()
    assert names.number("x" * 1_000_000) == names.number("x" * 2_000_000) == 0
    assert len(next(iter(names.numbers))) == 300


# ---------------------------------------------------------------- curves


def points(values: list[float]) -> tuple[Int64s, Float64s]:
    return np.arange(len(values), dtype=np.int64), np.array(values, dtype=np.float64)


@given(
    st.lists(st.floats(-5, 5) | st.just(float("nan")) | st.just(float("inf")), max_size=200),
    pixel_sizes,
)
def test_a_thinned_curve_keeps_extremes_and_nan(values: list[float], pixel: int) -> None:
    at, value = points(values)
    chosen = thinned(at, value, 0, len(values), pixel)
    assert (np.diff(chosen) > 0).all()
    for begin in range(0, len(values), pixel):
        here = value[begin : begin + pixel]
        kept = value[chosen[(chosen >= begin) & (chosen < begin + pixel)]]
        finite = here[np.isfinite(here)]
        if len(finite):
            assert np.nanmin(kept[np.isfinite(kept)]) == finite.min()
            assert np.nanmax(kept[np.isfinite(kept)]) == finite.max()
        assert np.isfinite(here).all() == np.isfinite(kept).all()


def test_a_thinned_curve_has_a_few_points_per_pixel() -> None:
    at, value = points(list(np.sin(np.arange(100_000))))
    assert len(thinned(at, value, 0, 100_000, 1000)) <= 3 * 100 + 2


def test_a_curve_reaches_beyond_both_edges() -> None:
    at, value = points([1.0] * 100)
    chosen = thinned(at, value, 40, 50, 1)
    assert [int(at[i]) for i in chosen] == list(range(39, 51))
    assert list(pairwise(chosen))
