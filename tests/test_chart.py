"""The lanes of a run: what they show, and that a file stores them as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stall_analyzer.chart import chart_files
from stall_analyzer.chart.chart_columns import Chart, Lane, name_of_rank
from stall_analyzer.chart.chart_window import search, timeline
from stall_analyzer.chart.event_lanes import MOST_ROWS
from stall_analyzer.chart.lanes import charts_of, phase_name
from stall_analyzer.model.causes import CAUSES
from stall_analyzer.model.findings import Report
from stall_analyzer.model.timeline import Phase, off_at_both_ends
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from tests import captures
from tests.logdirs import write_session
from tests.real_documents import analyzed
from tests.real_documents import report_of as sample_report
from tests.traces import TRAIN_OPS, call, clock, device, event, host, ops, wait
from tests.xspace import Event, space

START_NS = 1_700_000_000_000_000_000


def report_of(folder: Path, **hosts: list[bytes]) -> Report:
    traces = {name: space(*planes, clock(START_NS, 0.2)) for name, planes in hosts.items()}
    write_session(folder, "2023_11_14_22_13_20", **traces)
    return analyzed(folder)


def training() -> bytes:
    stage = Event("Iterator::Root::Map", 10e6, 10e6, {"name": "MapDataset:3"})
    return host(
        ("python", [*call(0, 60, 1, traced_ms=30), *call(60, 70, 2), *call(70, 80, 3)]),
        ("worker", [*ops(40, 60, 1, *TRAIN_OPS), *ops(65, 70, 2, *TRAIN_OPS), *wait(70, 75, 3),
                    *ops(75, 80, 3, *TRAIN_OPS)]),
        ("tf_data", [stage]),
    )  # fmt: skip


def test_a_phase_says_how_far_off_it_may_be() -> None:
    assert phase_name(Phase("validation", 0, PS_PER_S), PS_PER_S) == "validation ± 1.00 s"
    assert phase_name(Phase("first_step", 0, PS_PER_S), 0) == "first step"


def test_a_phase_is_off_by_as_much_as_its_begin_and_its_end() -> None:
    assert off_at_both_ends([0, 5, 3, 0]) == [0, 5, 8, 3]
    assert off_at_both_ends([]) == []


def gpu() -> bytes:
    kernels = [event("sgemm", 50, 55), event("MemcpyH2D", 55, 56)]
    return device("/device:GPU:0", ("Stream #7", kernels))


def lane(chart: Chart, id: str) -> Lane:
    return next(lane for lane in chart.lanes if lane.id == id)


def intervals(chart: Chart, id: str, row: int = 0) -> list[tuple[str, float, float]]:
    found = lane(chart, id)
    mine = slice(found.rows[row], found.rows[row + 1])
    return [
        (chart.names[name], start / PS_PER_MS, end / PS_PER_MS)
        for name, start, end in zip(
            name_of_rank(found.rank[mine]), found.start_ps[mine], found.end_ps[mine], strict=True
        )
    ]


def test_lanes_of_a_training(tmp_path: Path) -> None:
    (chart,) = charts_of(report_of(tmp_path, vm=[training()]))
    assert [step[0] for step in intervals(chart, "steps")] == ["step 0", "step 1", "step 2"]
    assert intervals(chart, "thread")[0] == ("train_step", 0.0, 60.0)
    assert intervals(chart, "compile") == [("tracing train_step", 0.0, 30.0)]
    assert intervals(chart, "pipeline/Root::Map") == [("Map (MapDataset:3)", 10.0, 20.0)]


def test_nested_events_are_below_each_other(tmp_path: Path) -> None:
    (chart,) = charts_of(report_of(tmp_path, vm=[training()]))
    assert intervals(chart, "thread", row=1)[0][0] == "tf.function-graph_building"
    assert lane(chart, "thread").depth >= 4


def test_the_ledger_lane_is_the_ledger(tmp_path: Path) -> None:
    report = report_of(tmp_path, vm=[training()])
    (chart,) = charts_of(report)
    found = lane(chart, "ledger")
    assert found.start_ps.tolist() == report.ledger.bounds_ps[:-1].tolist()
    assert found.end_ps.tolist() == report.ledger.bounds_ps[1:].tolist()
    causes = [CAUSES[cause] for cause in report.ledger.cause]
    assert [chart.names[name] for name in name_of_rank(found.rank)] == causes


def test_each_line_of_a_device_is_a_lane(tmp_path: Path) -> None:
    (chart,) = charts_of(report_of(tmp_path, vm=[training(), gpu()]))
    found = lane(chart, "device/GPU:0/Stream #7")
    assert (found.title, found.group) == ("GPU:0 Stream #7", "device")
    names = [name for name, *_ in intervals(chart, found.id)]
    assert names == ["sgemm", "MemcpyH2D"]


def test_each_host_has_its_own_chart_and_the_trainer_comes_first(tmp_path: Path) -> None:
    idle = host(("server", [event("RunGraph", 0, 1)]))
    charts = charts_of(report_of(tmp_path, a=[idle], b=[training()]))
    assert [chart.host for chart in charts] == ["b", "a"]
    assert [lane.id for lane in charts[1].lanes if lane.id == "compile"] == []


def test_a_run_without_a_trace_has_its_steps_and_its_loss() -> None:
    (chart,) = charts_of(sample_report("event_files_only"))
    assert chart.lanes[0].id == "ledger"
    assert "thread" not in {lane.id for lane in chart.lanes}


def test_memory_in_use_is_a_curve() -> None:
    (chart,) = charts_of(sample_report("memory_allocator_wait"))
    (memory,) = (curve for curve in chart.curves if curve.unit == "bytes")
    assert memory.id == "memory/bfc_cpu_allocator_for_gpu"
    assert (np.diff(memory.at_ps) >= 0).all()
    assert memory.value.max() > 2e8


def test_the_python_tracer_may_nest_as_deeply_as_it_likes(tmp_path: Path) -> None:
    nested = [event(f"$deep.py:{i} f", i / 10, 60 - i / 10) for i in range(100)]
    (chart,) = charts_of(report_of(tmp_path, vm=[host(("python", [*call(0, 60, 1), *nested]))]))
    assert lane(chart, "thread").depth == MOST_ROWS


def test_search_counts_all_and_shows_the_earliest(tmp_path: Path) -> None:
    (chart,) = charts_of(report_of(tmp_path, vm=[training()]))
    answer = search(chart, "TRAIN_STEP", limit=2)
    assert [hit["lane"] for hit in answer["hits"]] == ["thread", "compile"]
    assert answer["total"] > 2


@pytest.mark.parametrize("pixels", [3, 4000])
def test_a_chart_in_files_shows_the_same(tmp_path: Path, pixels: int) -> None:
    for chart in charts_of(report_of(tmp_path, vm=[training(), gpu()])):
        (tmp_path / "stored").write_bytes(b"".join(chart_files.pieces([chart], "1")))
        (stored,) = chart_files.load(tmp_path / "stored", "1")
        assert answer(stored, pixels) == answer(chart, pixels)
        assert isinstance(lane(stored, "ledger").start_ps, np.ndarray)


def answer(chart: Chart, pixels: int) -> dict[str, Any]:
    return timeline(chart, 0, chart.duration_ps, pixels)


def test_a_capture_adds_its_curves(tmp_path: Path) -> None:
    records = [captures.start(host="box"), captures.mark("epoch_begin", 0.0)]
    for second in range(3):
        values = {"gradient_norm": 2.0 + second, "host__rss_bytes": 1e9}
        values["device__GPU:0__bytes_in_use"] = 5e9
        records.append(captures.scalars(second + 0.5, second, learning_rate=0.1, **values))
    records += [captures.mark("epoch_end", 3.0), captures.mark("fit_end", 3.0)]
    (tmp_path / captures.file_name()).write_bytes(b"".join(records))
    (chart,) = charts_of(analyzed(tmp_path))
    curves = {curve.id: list(curve.value) for curve in chart.curves}
    assert curves["gradient_norm"] == [2.0, 3.0, 4.0]
    assert curves["memory/process"] == [1e9] * 3
    assert curves["memory/GPU:0"] == [5e9] * 3
    assert len(curves["learning_rate"]) == 3
