"""Killed jobs: files that end anywhere, and folders with half of what they should contain.

Whatever is left, the report says what it can: never a traceback, never a sum that does not add up,
and never one host that hides another.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.discover.discover import find_runs
from stall_analyzer.outcome import analyze_one
from stall_analyzer.report.document_types import ReportEntry
from tests import captures, event_files
from tests.real_documents import SCHEMA, document

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
TRACED = ("input_py_function", "compile_tracing", "memory_allocator_wait", "numerics_nan")
OUR_FAULT = ("could not be analyzed", "Detector ST", "bug in stall-analyze")

anywhere = st.floats(0, 1, exclude_max=True)


def answers(logdir: Path) -> list[ReportEntry]:
    """The entries of all runs, after a check that each is sound."""
    entries = []
    for run in find_runs([str(logdir)]).runs:
        outcome = analyze_one(run)
        assert not outcome.traceback, outcome.traceback
        entry = outcome.entry
        jsonschema.validate(document(entry), SCHEMA)
        assert sum(entry["buckets_ps"].values()) == entry["window"]["duration_ps"]
        said = " ".join(note["text"] for note in entry["notes"])
        assert not any(fault in said for fault in OUR_FAULT), said
        entries.append(entry)
    return entries


@contextmanager
def copy_of(sample: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "logs")
        shutil.copytree(SAMPLES / sample, copy)
        yield copy


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def trace_in(logdir: Path) -> Path:
    (trace,) = logdir.rglob("*.xplane.pb")
    return trace


@pytest.mark.parametrize("sample", TRACED)
@settings(max_examples=25, deadline=None)
@given(share=anywhere)
def test_a_trace_that_is_cut_anywhere_gives_a_report(sample: str, share: float) -> None:
    with copy_of(sample) as logdir:
        cut(trace_in(logdir), share)
        (entry,) = answers(logdir)
        assert entry["verdict"]["sentence"]


@pytest.mark.parametrize("sample", (*TRACED, "event_files_only"))
@settings(max_examples=25, deadline=None)
@given(share=anywhere)
def test_event_files_that_are_cut_anywhere_give_a_report(sample: str, share: float) -> None:
    with copy_of(sample) as logdir:
        for path in logdir.rglob("*tfevents*"):
            cut(path, share)
        for entry in answers(logdir):
            assert entry["verdict"]["sentence"]


@settings(max_examples=40, deadline=None)
@given(share=anywhere)
def test_a_cut_host_never_hides_a_whole_one(share: float) -> None:
    with copy_of("input_py_function") as logdir:
        whole = trace_in(logdir)
        (alone,) = answers(logdir)
        shutil.copy(whole, whole.with_name("killed.xplane.pb"))
        cut(whole.with_name("killed.xplane.pb"), share)
        (both,) = answers(logdir)
        seen = {ledger["host"]: ledger for ledger in both["host_ledgers"]}
        (before,) = alone["host_ledgers"]
        assert seen["host"]["buckets_ps"] == before["buckets_ps"]
        assert both["verdict"]["primary"] == "input"


@settings(max_examples=40, deadline=None)
@given(share=anywhere, late_is_cut=st.booleans())
def test_a_cut_worker_never_hides_its_peer(share: float, late_is_cut: bool) -> None:
    """Whichever is left, the late worker or the one that waits for it, gets its own report."""
    with copy_of("communication_straggler") as logdir:
        waiting, late = sorted(logdir.rglob("*.xplane.pb"))
        cut_one, whole = (late, waiting) if late_is_cut else (waiting, late)
        cut(cut_one, share)
        (entry,) = answers(logdir)
        name = whole.name.removesuffix(".xplane.pb")
        ledger = next(host for host in entry["host_ledgers"] if host["host"] == name)
        kept = ledger["buckets_ps"]["communication" if late_is_cut else "host"]
        assert kept > 0.5 * entry["window"]["duration_ps"]


def test_traces_without_events_and_events_without_traces() -> None:
    with copy_of("input_py_function") as logdir:
        shutil.rmtree(logdir / "train")
        (entry,) = answers(logdir)
        assert entry["window"]["source"] == "trace"
        assert entry["verdict"]["primary"] == "input"
    with copy_of("input_py_function") as logdir:
        shutil.rmtree(logdir / "plugins")
        (entry,) = answers(logdir)
        assert entry["window"]["source"] == "events"
        assert entry["verdict"]["status"] == "unknown"


# ---------------------------------------------------------------- restarts


def worker_file(folder: Path, index: int, begins_s: float, *records: bytes) -> None:
    """The capture of one of two workers, in an attempt that begins that many seconds later."""
    task = {"type": "worker", "index": index}
    pid = 100 + index + round(begins_s)
    path = folder / captures.file_name(captures.START_S + begins_s, pid=pid)
    started = captures.start(task=task, workers=2, pid=pid, ns=_ns(begins_s))
    path.write_bytes(event_files.framed(event_files.file_version()) + started + b"".join(records))


def _ns(at_s: float) -> int:
    return captures.START_NS + round(at_s * 1e9)


def test_each_restart_of_a_cluster_is_a_separate_run(tmp_path: Path) -> None:
    for attempt_s in (0.0, 300.0):
        for index in (0, 1):
            worker_file(
                tmp_path,
                index,
                attempt_s,
                captures.mark("epoch_begin", attempt_s + 1),
                captures.steps(attempt_s + 1, 20, 1.0),
                # In the first attempt, worker 1 is gone halfway; the second one ends well.
                *(
                    [captures.mark("epoch_end", attempt_s + 22, step=20)]
                    if attempt_s
                    else [captures.scalars(100.0, 20, host__rss_bytes=1.0)] * (index == 0)
                ),
            )
    first, second = answers(tmp_path)
    assert [entry["attempt"] for entry in (first, second)] == [1, 2]
    for entry in (first, second):
        assert entry["cluster"] is not None
        assert [member["name"] for member in entry["cluster"]["members"]] == [
            "box-worker-0",
            "box-worker-1",
        ]
    assert first["cluster"] is not None
    assert second["cluster"] is not None
    assert first["cluster"]["ended_first"] == "box-worker-1"
    assert first["verdict"]["status"] == "dead"
    assert second["cluster"]["ended_first"] is None
