"""All threads of a trace as lanes, a single event in full, and the sums of a stretch."""

from __future__ import annotations

from pathlib import Path

from stall_analyzer.chart.chart_columns import Chart, Lane
from stall_analyzer.chart.chart_event import event as event_at
from stall_analyzer.chart.chart_range import sums
from stall_analyzer.chart.chart_window import FEW_THREADS, search, timeline
from stall_analyzer.chart.event_lanes import readable
from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.decode.vocabulary import SHOWN_IN_FULL_BYTES, shortest_shown_ps
from stall_analyzer.model.units import PS_PER_MS, PS_PER_US
from tests.logdirs import write_session
from tests.real_documents import analyzed
from tests.traces import TRAIN_OPS, call, clock, event, host, ops
from tests.xspace import Event, space

START_NS = 1_700_000_000_000_000_000
SHORT_MS = 0.01  # an analysis folds it away


def chart_of(folder: Path, *threads: tuple[str, list[Event]]) -> Chart:
    training = ("python", [*call(0, 60, 1, traced_ms=30), *call(60, 70, 2), *call(70, 80, 3)])
    work = ("worker", [*ops(40, 60, 1, *TRAIN_OPS), *ops(65, 70, 2, *TRAIN_OPS)])
    trace = space(host(training, work, *threads), clock(START_NS, 0.2))
    write_session(folder, "2023_11_14_22_13_20", vm=trace)
    (chart,) = charts_of(analyzed(folder))
    return chart


def matmul(start_ms: float) -> Event:
    return event("tower/MatMul:MatMul", start_ms, start_ms + SHORT_MS)


def lane(chart: Chart, title: str) -> Lane:
    return next(lane for lane in chart.lanes if lane.title == title)


def test_an_event_is_found_however_short_it_is(tmp_path: Path) -> None:
    chart = chart_of(tmp_path, ("tf_Compute/7", [matmul(41), matmul(42)]))
    answer = search(chart, "TOWER/matmul", limit=50)
    assert answer["total"] == 2
    assert answer["hits"][0]["lane"] == lane(chart, "tf_Compute").id


def test_only_longer_events_of_a_file_too_large_for_memory_are_shown() -> None:
    assert shortest_shown_ps(SHOWN_IN_FULL_BYTES - 1) == 0
    assert shortest_shown_ps(4 * SHOWN_IN_FULL_BYTES) == 20 * PS_PER_US


def test_threads_are_named_by_their_pool_and_counted() -> None:
    names = ["tf_Compute/805320", "tf_Compute/-22", "tf_data_iterator/9", "Worker_0"]
    assert readable(names) == ["tf_Compute 1", "tf_Compute 2", "tf_data_iterator", "Worker"]


def test_what_only_surrounds_ops_does_not_hide_them(tmp_path: Path) -> None:
    process = event("ExecutorState::Process", 40, 50)
    chart = chart_of(tmp_path, ("tf_Compute/7", [process, matmul(41)]))
    found = lane(chart, "tf_Compute")
    assert (found.depth, len(found)) == (1, 1)


def test_of_threads_only_the_outermost_events_are_sent_until_they_are_opened(
    tmp_path: Path,
) -> None:
    chart = chart_of(tmp_path, ("loader", [event("load", 0, 80), event("decode", 10, 20)]))
    id = lane(chart, "loader").id
    for opened, rows in (((), 1), ((id,), 2)):
        answer = timeline(chart, 0, chart.duration_ps, 1000, opened)
        sent = next(lane for lane in answer["lanes"] if lane["id"] == id)
        assert (sent["depth"], [count for count, _ in sent["rows"]]) == (2, [1] * rows)


def test_of_very_many_threads_the_busiest_are_sent_unless_all_are_asked_for(tmp_path: Path) -> None:
    many = [(f"pool/{i}", [event("work", 0, i + 1)]) for i in range(FEW_THREADS + 4)]
    chart = chart_of(tmp_path, *many)
    for opened, count in (((), FEW_THREADS), (("threads",), FEW_THREADS + 5)):
        answer = timeline(chart, 0, chart.duration_ps, 1000, opened)
        threads = [lane for lane in answer["lanes"] if lane["group"] == "threads"]
        assert (len(threads), answer["threads"]) == (count, FEW_THREADS + 5)


def test_an_event_tells_its_arguments_and_what_lies_around_and_inside_it(tmp_path: Path) -> None:
    outer = event("load", 0, 80)
    inner = Event("decode", 10e6, 10e6, {"name": "image", "batch_size": 32})
    inside = [event("png", 12, 14), event("png", 15, 16), event("resize", 17, 18)]
    chart = chart_of(tmp_path, ("loader", [outer, inner, *inside]))
    id = lane(chart, "loader").id
    found = event_at(chart, id, 1, 10 * PS_PER_MS, 11 * PS_PER_MS)
    assert found is not None
    assert (found["name"], found["start_ps"], found["end_ps"]) == (
        "decode", 10 * PS_PER_MS, 20 * PS_PER_MS,
    )  # fmt: skip
    assert dict(found["arguments"]) == {"name": "image", "batch_size": 32}
    assert found["around"] == ["load"]
    assert found["inside"] == [["png", 2, 3 * PS_PER_MS], ["resize", 1, PS_PER_MS]]


def test_an_event_shows_what_training_spent_that_time_on(tmp_path: Path) -> None:
    chart = chart_of(tmp_path, ("loader", [event("load", 0, 30)]))
    found = event_at(chart, lane(chart, "loader").id, 0, 0, 1)
    assert found is not None
    assert found["causes"] == [["compile.tracing", 30 * PS_PER_MS]]


def test_the_longest_of_several_events_is_shown(tmp_path: Path) -> None:
    chart = chart_of(tmp_path, ("loader", [event("short", 1, 2), event("long", 3, 9)]))
    found = event_at(chart, lane(chart, "loader").id, 0, 0, 10 * PS_PER_MS)
    assert found is not None
    assert (found["name"], found["count"]) == ("long", 2)


def test_without_an_event_there_is_nothing_to_show(tmp_path: Path) -> None:
    chart = chart_of(tmp_path, ("loader", [event("short", 1, 2)]))
    id = lane(chart, "loader").id
    assert event_at(chart, id, 0, 5 * PS_PER_MS, 6 * PS_PER_MS) is None
    assert event_at(chart, id, 7, 0, PS_PER_MS) is None
    assert event_at(chart, "nobody", 0, 0, PS_PER_MS) is None


def test_the_causes_of_a_stretch_are_all_of_it(tmp_path: Path) -> None:
    chart = chart_of(tmp_path)
    start, end = 20 * PS_PER_MS, 45 * PS_PER_MS
    causes = sums(chart, start, end)["causes"]
    assert sum(ps for _, ps in causes) == end - start
    assert causes[0][1] >= causes[-1][1]


def test_ops_are_summed_by_type_and_without_what_runs_inside_of_them(tmp_path: Path) -> None:
    calls = [event("a/MatMul:MatMul", 0, 10), event("b/MatMul:MatMul", 20, 25)]
    inside = event("pack", 2, 5)
    chart = chart_of(tmp_path, ("tf_Compute/1", [*calls, inside]))
    ops_found = {op: numbers for op, *numbers in sums(chart, 0, 30 * PS_PER_MS)["ops"]}
    assert ops_found["MatMul"] == [2, 15 * PS_PER_MS, 12 * PS_PER_MS]
    assert ops_found["pack"] == [1, 3 * PS_PER_MS, 3 * PS_PER_MS]


def test_an_event_that_the_stretch_cuts_counts_with_the_part_inside(tmp_path: Path) -> None:
    chart = chart_of(tmp_path, ("loader", [event("load", 0, 80), event("decode", 10, 20)]))
    found = {op: numbers for op, *numbers in sums(chart, 15 * PS_PER_MS, 40 * PS_PER_MS)["ops"]}
    assert found["load"] == [1, 25 * PS_PER_MS, 20 * PS_PER_MS]
    assert found["decode"] == [1, 5 * PS_PER_MS, 5 * PS_PER_MS]


def test_flames_are_as_wide_as_what_ran_below_them(tmp_path: Path) -> None:
    loading = [event("load", 0, 80), event("decode", 10, 20), event("decode", 30, 40)]
    chart = chart_of(tmp_path, ("loader/1", loading), ("loader/2", loading))
    flames = sums(chart, 0, 50 * PS_PER_MS)["flames"]
    (root,) = (i for i, flame in enumerate(flames) if flame[:2] == [-1, "loader"])
    assert flames[root][2] == 100 * PS_PER_MS
    (load,) = (i for i, flame in enumerate(flames) if flame[:2] == [root, "load"])
    assert [load, "decode", 40 * PS_PER_MS] in flames
