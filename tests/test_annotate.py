"""Annotated copies of traces: the original, byte for byte, and our lines after it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.cli import main as cli
from stall_analyzer.decode.vocabulary import ANNOTATIONS
from stall_analyzer.report.document import run_document
from stall_analyzer.report.document_types import ReportEntry
from tests import traces
from tests.logdirs import write_session
from tests.real_documents import analyzed
from tests.xspace import space

pb2 = pytest.importorskip("tensorflow.tsl.profiler.protobuf.xplane_pb2")
SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
TRACED = sorted({path.parents[3].name for path in SAMPLES.rglob("*.xplane.pb")})


def annotated(sample: str, folder: Path) -> tuple[Path, Path]:
    """The trace of the sample's first host, and its copy."""
    source = min((SAMPLES / sample).rglob("*.xplane.pb"))
    assert cli.main([str(SAMPLES / sample), "--annotate", str(folder)]) == 0
    return source, min(folder.rglob("*.xplane.pb"))


def our_lines(path: Path) -> tuple[Any, list[Any]]:
    """The host's plane, and those of its lines that are ours."""
    space = pb2.XSpace.FromString(path.read_bytes())
    plane = next(plane for plane in space.planes if plane.name == "/host:CPU")
    return plane, [line for line in plane.lines if line.name.startswith(ANNOTATIONS)]


def document(folder: Path) -> ReportEntry:
    return run_document(analyzed(folder))


@pytest.mark.parametrize("sample", TRACED)
def test_without_our_lines_the_copy_is_the_original(sample: str, tmp_path: Path) -> None:
    source, copy = annotated(sample, tmp_path / "out")
    assert copy.relative_to(tmp_path / "out") == source.relative_to(SAMPLES / sample)
    before = pb2.XSpace.FromString(source.read_bytes())
    after = pb2.XSpace.FromString(copy.read_bytes())
    for ours, theirs in zip(after.planes, before.planes, strict=True):
        del ours.lines[len(theirs.lines) :]
        for number in set(ours.event_metadata) - set(theirs.event_metadata):
            del ours.event_metadata[number]
    assert after == before


@pytest.mark.parametrize("sample", TRACED)
def test_the_lines_hold_buckets_steps_and_findings(sample: str, tmp_path: Path) -> None:
    annotated(sample, tmp_path / "out")
    report = document(SAMPLES / sample)
    host = report["verdict"]["host"] or report["hosts"][0]
    (copy,) = (tmp_path / "out").rglob(f"{host}.xplane.pb")
    plane, (buckets, steps, *findings) = our_lines(copy)
    names = {number: metadata.name for number, metadata in plane.event_metadata.items()}
    sums: dict[str, int] = {}
    for event in buckets.events:
        cause = names[event.metadata_id]
        sums[cause] = sums.get(cause, 0) + event.duration_ps
    assert [line.name for line in (buckets, steps)] == ["Stall: buckets", "Stall: steps"]
    untraced = {"unknown.not_traced"}  # has no place in the trace
    assert sums == {c: ps for c, ps in report["causes_ps"].items() if c not in untraced}
    assert len(steps.events) == len(report["steps"])
    shown = {names[event.metadata_id][:5] for line in findings for event in line.events}
    assert shown == {f["id"] for f in report["findings"] if f["evidence"]}
    assert len({line.id for line in plane.lines}) == len(plane.lines)


def test_each_host_has_its_own_buckets(tmp_path: Path) -> None:
    annotated("communication_straggler", tmp_path / "out")
    ledgers = document(SAMPLES / "communication_straggler")["host_ledgers"]
    assert len(ledgers) == 2
    for ledger in ledgers:
        (copy,) = tmp_path.rglob(f"{ledger['host']}.xplane.pb")
        plane, (buckets, *_) = our_lines(copy)
        expected = ledger["buckets_ps"]
        del expected["unknown"]  # most of it is before its own trace began
        sums = dict.fromkeys(expected, 0)
        for event in buckets.events:
            bucket = plane.event_metadata[event.metadata_id].name.partition(".")[0]
            if bucket in sums:
                sums[bucket] += event.duration_ps
        assert sums == expected


@pytest.mark.parametrize("sample", TRACED)
def test_our_lines_are_where_the_events_are(sample: str, tmp_path: Path) -> None:
    """A step of the report begins with the event that marks it."""
    _, copy = annotated(sample, tmp_path / "out")
    space = pb2.XSpace.FromString(copy.read_bytes())
    starts = {
        line.timestamp_ns * 1000 + event.offset_ps
        for plane in space.planes
        if plane.name == "/host:CPU"
        for line in plane.lines
        if not line.name.startswith(ANNOTATIONS)
        for event in line.events
    }
    _, (_, steps, *_) = our_lines(copy)
    ours = {steps.timestamp_ns * 1000 + event.offset_ps for event in steps.events}
    assert ours <= starts


def test_xprofs_trace_viewer_shows_our_lines_at_their_place(tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    _, copy = annotated("input_py_function", tmp_path / "out")
    data, _ = convert.xspace_to_tool_data([str(copy)], "trace_viewer", {})
    events = [event for event in json.loads(data)["traceEvents"] if "tid" in event]
    lines = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    shown = [e for e in events if e["tid"] == lines["Stall: steps"] and "ts" in e]
    report = document(SAMPLES / "input_py_function")
    zero_ps = report["traces"][0]["start_ps"]
    expected = [(step["start_ps"] - zero_ps) / 1e6 for step in report["steps"]]
    assert [event["ts"] for event in shown] == pytest.approx(expected, abs=0.01)
    assert {"Stall: buckets", "Stall: findings"} <= set(lines)


def test_events_of_a_line_do_not_overlap(tmp_path: Path) -> None:
    _, copy = annotated("input_py_function", tmp_path / "out")
    for line in our_lines(copy)[1]:
        until = 0
        for event in line.events:
            assert event.offset_ps >= until
            until = event.offset_ps + event.duration_ps


def test_analyzing_the_copy_gives_the_same_report(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "healthy" / "plugins", tmp_path / "logs" / "plugins")
    cli.main([str(tmp_path / "logs"), "--annotate", str(tmp_path / "out")])
    assert document(tmp_path / "out") == {**document(tmp_path / "logs"), "folder": "out"}


def test_a_trace_without_a_host_gets_a_plane_for_the_lines(tmp_path: Path) -> None:
    steps, kernels = [traces.event("0", 0, 5)], [traces.event("k", 0, 5)]
    plane = traces.device("/device:GPU:0", ("Steps", steps), ("Stream", kernels))
    write_session(tmp_path / "logs", vm=space(plane))
    assert cli.main([str(tmp_path / "logs"), "--annotate", str(tmp_path / "out")]) == 0
    (copy,) = (tmp_path / "out").rglob("*.xplane.pb")
    _, lines = our_lines(copy)
    assert lines[0].name == "Stall: buckets"
    assert copy.read_bytes().startswith(space(plane))


def test_a_copy_has_the_same_relative_path_as_its_original(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for run in ("a/train", "b"):
        shutil.copytree(SAMPLES / "healthy" / "plugins", logs / run / "plugins")
    assert cli.main([str(logs), "--annotate", str(out)]) == 0
    copies, originals = (
        {path.relative_to(root) for path in root.rglob("*.xplane.pb")} for root in (out, logs)
    )
    assert copies == originals


def test_a_file_by_itself_is_put_where_tensorboard_finds_it(tmp_path: Path) -> None:
    (source,) = (SAMPLES / "healthy").rglob("*.xplane.pb")
    bare = tmp_path / "some.xplane.pb"
    shutil.copy(source, bare)
    assert cli.main([str(bare), "--annotate", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "plugins" / "profile" / "some" / bare.name).is_file()


def test_a_cut_trace_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = (SAMPLES / "healthy").rglob("*.xplane.pb")
    write_session(tmp_path / "logs", vm=source.read_bytes()[:150_000])
    cli.main([str(tmp_path / "logs"), "--annotate", str(tmp_path / "out")])
    assert "there was nothing to write" in capsys.readouterr().err


@pytest.mark.parametrize("inside", ["", "deeper/out"])
def test_a_log_directory_is_never_written_into(
    inside: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logdir = SAMPLES / "healthy"
    before = sorted(logdir.rglob("*"))
    assert cli.main([str(logdir), "--annotate", str(logdir / inside)]) == 2
    assert "it is inside the log directory" in capsys.readouterr().err
    assert sorted(logdir.rglob("*")) == before


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("precious")
    assert cli.main([str(SAMPLES / "healthy"), "--annotate", str(tmp_path)]) == 2
    assert "is not an empty folder" in capsys.readouterr().err


def test_without_a_trace_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(SAMPLES / "event_files_only")
    assert cli.main([sample, "--annotate", str(tmp_path / "out")]) == 0
    assert "there was nothing to write" in capsys.readouterr().err
