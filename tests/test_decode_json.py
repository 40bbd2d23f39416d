"""Legacy Chrome traces give the same shape of Trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from stall_analyzer.decode import decode
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import PS_PER_MS
from tests.corpus import case


def meta(name: str, value: str, **place: int) -> dict[str, object]:
    return {"ph": "M", "name": name, "args": {"name": value}, **place}


def event(name: str, ts: float, dur: float, **args: object) -> dict[str, object]:
    return {"ph": "X", "pid": 1, "tid": 2, "name": name, "ts": ts, "dur": dur, "args": args}


HEAD = [meta("process_name", "/host:CPU", pid=1), meta("thread_name", "python", pid=1, tid=2)]


def document(*events: dict[str, object]) -> bytes:
    items: Sequence[object] = [*HEAD, *events, {}]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": items}).encode()


def read(tmp_path: Path, data: bytes) -> Trace:
    path = tmp_path / "vm.trace.json.gz"
    path.write_bytes(data)
    return decode.read_trace(HostFile("vm", str(path), "trace_json", len(data)))


def test_processes_are_planes_threads_are_lines(tmp_path: Path) -> None:
    trace = read(tmp_path, gzip.compress(document(
        event("EagerExecute", 10.5, 4.25), event("FunctionRun", 11.0, 1.0, id="-7", eager_op="Add"),
    )))  # fmt: skip
    assert [plane.name for plane in trace.planes] == ["/host:CPU"]
    assert [(line.id, line.name, line.last_event) for line in trace.lines] == [(2, "python", 2)]
    assert trace.names == ("EagerExecute", "FunctionRun")
    assert trace.events.start_ps.tolist() == [0, 500_000]
    assert trace.events.duration_ps.tolist() == [4_250_000, 1_000_000]
    assert trace.events.parent.tolist() == [-1, 0]
    assert trace.base_unix_ns is None
    assert (trace.stats["id"].kind, trace.stats["id"].values.tolist()) == ("int", [-7])
    assert [trace.strings[i] for i in trace.stats["eager_op"].values] == ["Add"]


def test_the_long_name_is_the_name(tmp_path: Path) -> None:
    data = document(event("MatMul", 0, 2000, long_name="dense/MatMul:MatMul"))
    assert read(tmp_path, data).names == ("dense/MatMul:MatMul",)


def test_the_number_of_a_step_is_not_part_of_its_name(tmp_path: Path) -> None:
    step = event("train 7", 0, 2000, group_id="7", step_name="train 7")
    assert read(tmp_path, document(step)).names == ("train",)


def test_a_cut_file_gives_what_is_before_the_cut(tmp_path: Path) -> None:
    whole = document(*(event("EagerExecute", 10 * i, 5) for i in range(1000)))
    for data in (whole[: len(whole) // 2], gzip.compress(whole)[:-500]):
        trace = read(tmp_path, data)
        assert 300 < len(trace.events) < 1000
        assert "cut off" in trace.notes[0].text


def test_events_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    bad = event("EagerExecute", 0, -1), {"ph": "X", "pid": 1, "ts": "x"}, event("a", 1e999, 1)
    trace = read(tmp_path, document(*bad, event("EagerExecute", 0, 1)))
    assert len(trace.events) == 1
    assert "Skipped 3 damaged events and kept 1" in trace.notes[0].text


@pytest.mark.parametrize("time", [[1.0] * 1000, "x", None, float("nan"), -1e300, 10**4000])
def test_one_impossible_time_costs_its_own_event_only(tmp_path: Path, time: object) -> None:
    steps = [event("EagerExecute", 10.0 * i, 5) for i in range(50)]
    odd: dict[str, object] = {**event("EagerExecute", 0, 5), "ts": time}
    trace = read(tmp_path, document(*steps, odd))
    assert len(trace.events) == 50
    assert trace.events.start_ps[-1] == 490_000_000
    assert "Skipped 1 damaged event and kept 50" in trace.notes[0].text


@pytest.mark.parametrize("args", [5, "text", [1], "\ud800", 1e308])
def test_invalid_arguments_do_no_harm(tmp_path: Path, args: object) -> None:
    odd: dict[str, object] = {**event("EagerExecute", 0, 5), "args": args}
    assert len(read(tmp_path, document(odd)).events) == 1


def test_half_a_character_in_a_name_can_be_written_again(tmp_path: Path) -> None:
    (name,) = read(tmp_path, document(event("a\ud800", 0, 2000))).names
    assert name.encode() == b"a?"


def test_endless_nesting_ends_the_reading(tmp_path: Path) -> None:
    head = document(event("EagerExecute", 0, 5)).removesuffix(b", {}]}")
    trace = read(tmp_path, head + b", " + b"[" * 100_000)
    assert len(trace.events) == 1
    assert "cut off" in trace.notes[0].text


@pytest.mark.parametrize(
    "data", [b'{"traceE', b"[]", gzip.compress(b"{}"), gzip.compress(document())[:12]]
)
def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="is not a Chrome trace"):
        read(tmp_path, data)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="is empty"):
        read(tmp_path, b"")


def corpus_trace(path: Path, trace_format: str) -> Trace:
    return decode.read_trace(HostFile("vm", str(path), trace_format, path.stat().st_size))


def test_the_large_public_trace_shows_its_graph_building() -> None:
    (path,) = Path(case("L06")).glob("**/*.trace.json.gz")
    trace = corpus_trace(path, "trace_json")
    assert trace.totals.count.sum() == 207_975
    building = trace.names.index("tf.function-graph_building")
    assert abs(trace.totals.total_ps[building] / PS_PER_MS - 234.6) < 0.1


def test_both_formats_of_one_capture_agree() -> None:
    folder = Path(case("L14"))
    (old,), (new,) = folder.glob("**/*.trace.json.gz"), folder.glob("**/*.xplane.pb")
    legacy, modern = corpus_trace(old, "trace_json"), corpus_trace(new, "xplane")
    shared = set(legacy.names) & set(modern.names)
    assert shared == set(legacy.names)
    for name in shared:
        a = legacy.totals.total_ps[legacy.names.index(name)]
        b = modern.totals.total_ps[modern.names.index(name)]
        assert abs(int(a) - int(b)) <= 1000, name
