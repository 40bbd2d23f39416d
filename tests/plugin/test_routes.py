"""Every route, on the sample logs, through TensorBoard's own application."""

from __future__ import annotations

import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stall_analyzer.model.causes import BUCKETS, CAUSES
from stall_analyzer.report.page import KNOWN
from tests.plugin.boards import SAMPLES, Board
from tests.real_documents import SCHEMA, document
from tests.timelines import unpacked

NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/expected.json"))
RUN = "numerics_nan"


def whole(samples: Board, run: str = RUN, pixels: int = 1000) -> dict[str, Any]:
    duration = samples.runs()[run]["duration_ps"]
    answer = samples.answer("timeline", run=run, start_ps=0, end_ps=duration, pixels=pixels)
    return unpacked(answer)


# ---------------------------------------------------------------- runs


def test_runs_are_named_as_tensorboard_names_them(samples: Board) -> None:
    assert sorted(samples.runs()) == NAMES


def test_a_run_says_the_same_in_the_list_as_in_its_report(samples: Board) -> None:
    for name, run in samples.runs().items():
        report = samples.report(name)["report"]
        assert run["state"] == "ready"
        assert run["progress"] is None
        assert run["error"] is None
        assert run["sentence"] == report["verdict"]["sentence"]
        assert sum(run["buckets_ps"].values()) == run["duration_ps"]
        assert [f["id"] for f in run["findings"]] == [f["id"] for f in report["findings"]]
        assert set(KNOWN) <= set(run)


def test_the_list_comes_with_sums_over_all_runs(samples: Board) -> None:
    answer = samples.answer("runs")
    jsonschema.validate(document(fleet=answer["fleet"]), SCHEMA)
    assert answer["fleet"]["runs"] == len(NAMES)
    assert answer["fleet"]["hosts"] == len(NAMES) + 1  # communication_straggler has two
    assert {run["run"] for run in answer["fleet"]["costliest_runs"]} <= set(NAMES)


def test_the_list_teaches_how_to_capture(samples: Board) -> None:
    answer = samples.answer("runs")
    assert "tf.profiler.experimental.Profile(" in answer["capture"]
    assert answer["logdir"] == str(SAMPLES)
    assert answer["problems"] == []


def test_links_into_the_profile_plugin_need_that_plugin(samples: Board) -> None:
    assert samples.answer("runs")["profile_plugin"] is True
    assert Board(str(SAMPLES)).answer("runs")["profile_plugin"] is False
    several = Board(spec=f"a:{SAMPLES}", profile=True)
    assert several.answer("runs")["profile_plugin"] is False


# ---------------------------------------------------------------- report


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_an_entry_of_the_document(samples: Board, name: str) -> None:
    answer = samples.report(name)
    jsonschema.validate(document(answer["report"]), SCHEMA)
    assert answer["version"]


def test_a_report_tells_where_each_trace_begins(samples: Board) -> None:
    """The sample was profiled from before its first epoch."""
    answer = samples.report(RUN)
    (trace,) = answer["traces"]
    (session,) = samples.runs()[RUN]["sessions"]
    assert (trace["session"], trace["host"]) == (session, "host")
    assert trace["start_ps"] < 0
    assert samples.report("event_files_only")["traces"] == []


# ---------------------------------------------------------------- timeline


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_lane_tiles_the_first_epoch(samples: Board, name: str) -> None:
    answer = whole(samples, name)
    ledger = next(lane for lane in answer["lanes"] if lane["id"] == "ledger")
    items = ledger["items"]
    assert items[0][0] == 0
    assert items[-1][1] == answer["duration_ps"]
    assert all(left[1] == right[0] for left, right in pairwise(items))
    assert {answer["names"][item[2]] for item in items} <= set(CAUSES)


@pytest.mark.parametrize("pixels", [1, 100, 10_000])
def test_the_ledger_lane_has_the_buckets_of_the_report_at_any_width(
    samples: Board, pixels: int
) -> None:
    answer = whole(samples, pixels=pixels)
    ledger = next(lane for lane in answer["lanes"] if lane["id"] == "ledger")
    sums = dict.fromkeys(BUCKETS, 0)
    for start, end, name, _, count, parts in ledger["items"]:
        assert bool(parts) == (count > 1)
        for cause, ps in parts or [(name, end - start)]:
            sums[answer["names"][cause].partition(".")[0]] += ps
    assert sums == samples.report(RUN)["report"]["buckets_ps"]


def test_lanes_show_what_the_issue_asks_for(samples: Board) -> None:
    lanes = {lane["id"]: lane for lane in whole(samples)["lanes"]}
    assert {"ledger", "phases", "steps", "thread", "compile"} <= set(lanes)
    assert any(lane["group"] == "input" for lane in lanes.values())
    assert lanes["thread"]["depth"] > 1


def test_a_nan_loss_is_null(samples: Board) -> None:
    series = {series["id"]: series for series in whole(samples)["series"]}
    assert None in [value for _, value in series["loss"]["points"]]
    assert series["learning_rate"]["points"]


def test_a_window_names_only_what_it_shows(samples: Board) -> None:
    window = {"start_ps": 0, "end_ps": 1_000_000, "pixels": 10}
    answer = unpacked(samples.answer("timeline", run=RUN, **window))
    used = {item[2] for lane in answer["lanes"] for item in lane["items"]}
    assert used == set(range(len(answer["names"])))


def test_a_window_is_clipped_to_the_first_epoch(samples: Board) -> None:
    duration = samples.runs()[RUN]["duration_ps"]
    answer = samples.answer("timeline", run=RUN, start_ps=-5, end_ps=10 * duration, pixels=10)
    assert (answer["start_ps"], answer["end_ps"]) == (0, duration)


def test_the_training_host_is_the_default(samples: Board) -> None:
    answer = whole(samples)
    (host,) = samples.runs()[RUN]["hosts"]
    assert answer["host"] == host
    window = {"start_ps": 0, "end_ps": answer["end_ps"], "pixels": 1000}
    assert unpacked(samples.answer("timeline", run=RUN, host=host, **window)) == answer


@pytest.mark.parametrize(
    "wrong",
    [
        {"pixels": 0},
        {"pixels": 10_001},
        {"pixels": "many"},
        {"start_ps": 5, "end_ps": 5},
        {"start_ps": "1e3"},
        {"start_ps": 10**30, "end_ps": 10**31},
        {"end_ps": "9" * 5000},
    ],
)
def test_an_impossible_window_is_a_bad_request(samples: Board, wrong: dict[str, object]) -> None:
    arguments = {"run": RUN, "start_ps": 0, "end_ps": 10**9, "pixels": 100} | wrong
    response = samples.ask("timeline", **arguments)
    assert response.status_code == 400
    assert response.get_json()["error"]


# ---------------------------------------------------------------- one event, a range of them


def test_a_single_item_of_the_timeline_can_be_examined(samples: Board) -> None:
    answer = whole(samples)
    lane = next(lane for lane in answer["lanes"] if lane["id"] == "thread")
    start, end, name, row, *_ = lane["items"][0]
    where = {"lane": lane["id"], "row": row, "start_ps": start, "end_ps": end}
    found = samples.answer("event", run=RUN, **where)
    assert found["name"] == answer["names"][name]
    assert sum(ps for _, ps in found["causes"]) == found["end_ps"] - found["start_ps"]
    assert samples.ask("event", run=RUN, **{**where, "lane": "nobody"}).status_code == 404


def test_the_sums_of_the_whole_range_are_those_of_the_report(samples: Board) -> None:
    report = samples.report(RUN)["report"]
    window_ps = report["window"]["duration_ps"]
    answer = samples.answer("range", run=RUN, start_ps=0, end_ps=window_ps)
    causes = dict(answer["causes"])
    assert causes == {cause: ps for cause, ps in report["causes_ps"].items() if ps}
    assert all(len(op) == 4 for op in answer["ops"])
    assert samples.ask("range", run=RUN, start_ps=5, end_ps=5).status_code == 400


def test_a_python_function_of_the_input_has_its_own_lane(samples: Board) -> None:
    found = samples.answer("search", run="input_py_function", text="EagerPyFunc")
    assert found["total"] > 0
    assert all(hit["lane"].startswith("thread/") for hit in found["hits"])


# ---------------------------------------------------------------- search and manual


def test_search_finds_events_in_any_case(samples: Board) -> None:
    answer = samples.answer("search", run=RUN, text="STEP 1", limit=3)
    assert answer["total"] >= len(answer["hits"]) == 3
    assert all("step 1" in hit["name"].casefold() for hit in answer["hits"])
    starts = [hit["start_ps"] for hit in answer["hits"]]
    assert starts == sorted(starts)


def test_search_without_a_hit(samples: Board) -> None:
    answer = samples.answer("search", run=RUN, text="no such event")
    assert answer == {"hits": [], "total": 0}


@pytest.mark.parametrize("wrong", [{"text": " "}, {"limit": 0}, {"limit": 10**6}, {"limit": "x"}])
def test_an_impossible_search_is_a_bad_request(samples: Board, wrong: dict[str, object]) -> None:
    arguments = {"run": RUN, "text": "step"} | wrong
    assert samples.ask("search", **arguments).status_code == 400


def test_every_finding_has_a_manual_page(samples: Board) -> None:
    ids = {finding["id"] for run in samples.runs().values() for finding in run["findings"]}
    for finding in ids:
        answer = samples.answer("manual", id=finding)
        assert answer["id"] == finding
        assert answer["sections"][0]["heading"] == "What it finds"
        assert all(section["text"] for section in answer["sections"])


# ---------------------------------------------------------------- what is not there


@pytest.mark.parametrize(
    ("route", "arguments"),
    [
        ("report", {"run": "nobody"}),
        ("report", {"run": "../" + RUN}),
        ("report", {"run": "<script>alert(1)</script>"}),
        ("timeline", {"run": "nobody", "start_ps": 0, "end_ps": 9, "pixels": 9}),
        ("timeline", {"run": RUN, "host": "nobody", "start_ps": 0, "end_ps": 9, "pixels": 9}),
        ("search", {"run": "nobody", "text": "x"}),
        ("manual", {"id": "ST999"}),
        ("static/nothing.js", {}),
        ("static/../plugin.py", {}),
        ("static/..%2fplugin.py", {}),
        ("static//etc/passwd", {}),
    ],
)
def test_what_is_not_there_is_404_with_a_sentence(
    samples: Board, route: str, arguments: dict[str, object]
) -> None:
    response = samples.ask(route, **arguments)
    assert response.status_code == 404
    assert response.content_type == "application/json"
    assert response.get_json()["error"]


@pytest.mark.parametrize("route", ["report", "timeline", "search", "manual"])
def test_a_missing_argument_is_400(samples: Board, route: str) -> None:
    response = samples.ask(route)
    assert response.status_code == 400
    assert "is missing" in response.get_json()["error"]


# ---------------------------------------------------------------- inside TensorBoard


def test_the_tab_is_listed_and_active(samples: Board) -> None:
    listing = samples.get("/data/plugins_listing").get_json()["stall"]
    assert listing["enabled"] is True
    assert listing["tab_name"] == "Stall"
    assert listing["loading_mechanism"]["type"] == "IFRAME"
    assert listing["loading_mechanism"]["module_path"] == "/data/plugin/stall/index.js"


def test_behind_a_path_prefix() -> None:
    board = Board(str(SAMPLES), prefix="/deep/board")
    listing = board.get("/data/plugins_listing").get_json()["stall"]
    assert listing["loading_mechanism"]["module_path"] == "/deep/board/data/plugin/stall/index.js"
    assert sorted(board.runs()) == NAMES
    assert board.ask("index.js").status_code == 200
    assert board.ask("static/index.js").status_code == 200


def test_tensorboards_security_validator_stays_silent(
    samples: Board, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="tensorboard"):
        for route in ("runs", "index.js", "static/index.js", "static/none", "report", "manual"):
            samples.ask(route)
        whole(samples)
        entry = samples.get("/data/plugin_entry.html", name="stall")
    assert entry.status_code == 200
    assert caplog.records == []


def test_answers_are_strict_json(samples: Board) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    response = samples.ask("report", run=RUN)
    json.loads(response.get_data(as_text=True), parse_constant=refuse)


def test_nothing_is_written_to_the_logdir(samples: Board, tmp_path: Path) -> None:
    def listing() -> list[tuple[str, float]]:
        return sorted((str(path), path.stat().st_mtime) for path in SAMPLES.rglob("*"))

    before = listing()
    board = Board(str(SAMPLES))
    board.report(RUN)
    assert listing() == before
    assert any((tmp_path / "cache").rglob("*.result"))


@pytest.mark.parametrize("route", ["runs", "report", "manual", "index.js"])
def test_routes_only_read(samples: Board, route: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        refused = samples.ask_by(method, route)
        assert refused.status_code == 405
        assert refused.headers["Allow"] == "GET, HEAD"
