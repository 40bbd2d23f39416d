"""Every reader has a budget, every worker a limit: hostile files cost little, whatever they ask."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.decode import trace_json
from stall_analyzer.decode.event_columns import TEXT_LIMIT
from stall_analyzer.discover.discover import find_runs
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.model.intervals import NOTHING, inherit
from stall_analyzer.model.runs import HostFile, Run
from stall_analyzer.outcome import analyze_one
from stall_analyzer.progress import Progress
from stall_analyzer.results import memory_limit
from stall_analyzer.results.worker_process import COMMAND, WorkerProcess, WorkFailed
from tests.batch.fleets import fake_run
from tests.patience import PATIENCE_S


def take_a_gigabyte(run: Run, progress: Progress) -> int:
    return len(bytearray(1 << 30))


def tell_limit(run: Run, progress: Progress) -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


# ---------------------------------------------------------------- workers


def test_a_worker_has_a_limit_of_memory_and_outlives_a_run_that_wants_more() -> None:
    worker = WorkerProcess(memory_bytes=512 << 20)
    try:
        with pytest.raises(WorkFailed, match="MemoryError"):
            worker.do(take_a_gigabyte, fake_run("a"), deadline_s=PATIENCE_S)
        assert worker.do(tell_limit, fake_run("b"), deadline_s=PATIENCE_S) == 512 << 20
    finally:
        worker.close()


def test_the_workers_of_a_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory_limit.VARIABLE, raising=False)
    monkeypatch.setattr(memory_limit, "_physical_bytes", lambda: 64 << 30)
    monkeypatch.setattr(memory_limit, "OF_CONTAINER", ())
    assert memory_limit.memory_limit() == 48 << 30
    assert memory_limit.memory_limit(8) == 6 << 30
    assert memory_limit.memory_limit(1000) == memory_limit.LEAST_BYTES
    monkeypatch.setenv(memory_limit.VARIABLE, "1000")
    assert memory_limit.memory_limit(8) == 1000


def test_what_takes_too_much_memory_is_said_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def greedy(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("stall_analyzer.outcome.analyze", greedy)
    outcome = analyze_one(fake_run("a"))
    assert "more memory than one run may" in outcome.entry["notes"][0]["text"]
    assert not outcome.traceback and not outcome.final


def test_a_worker_imports_nothing_from_the_folder_that_the_user_is_in(tmp_path: Path) -> None:
    for name in ("numpy", "json", "stall_analyzer"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('code of the current folder')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("PYTHONSAFEPATH", None)  # which Python 3.10 does not know
    ran = subprocess.run(
        COMMAND, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


# ---------------------------------------------------------------- readers


def packed(tmp_path: Path, begin: bytes, more: bytes = b"", megabytes: int = 0) -> HostFile:
    path = tmp_path / "vm.trace.json.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(begin)
        for _ in range(megabytes):
            stream.write(more * (1 << 20))
    return HostFile("vm", str(path), "trace_json", path.stat().st_size)


def peak_bytes(code: str) -> int:
    """The peak of a process that runs it; ru_maxrss would be inherited from this one."""
    tail = "\nprint(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])"
    made = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return int(made.stdout.split()[-1]) << 10


READ = """
from stall_analyzer.decode import trace_json
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model.runs import HostFile
try:
    with open({path!r}, "rb") as file:
        trace_json.read(file, HostFile("vm", {path!r}, "trace_json", 0))
except UnreadableFile:
    pass
"""


@pytest.mark.parametrize(
    ("begin", "more"),
    [(b"", b" "), (b'{"traceEvents": [', b"["), (b'{"traceEvents": [{"ph": "X", "name": "', b"x")],
    ids=["spaces", "brackets", "name"],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_packed_trace_takes_no_more_memory_than_it_may(
    tmp_path: Path, begin: bytes, more: bytes
) -> None:
    file = packed(tmp_path, begin, more, megabytes=400)
    assert peak_bytes(READ.format(path=file.path)) < 300 << 20


def test_lists_in_place_of_values_are_kept_as_short_text(tmp_path: Path) -> None:
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "a"}
    hostile = {**event, "args": {"id": [list(range(100))] * 1000, "long_name": "n" * 10**6}}
    text = json.dumps({"traceEvents": [hostile] * 20}).encode()
    file = packed(tmp_path, text)
    with files.open_binary(file.path) as stream:
        trace = trace_json.read(stream, file)
    assert max(map(len, (*trace.names, *trace.strings))) <= TEXT_LIMIT


@pytest.mark.parametrize(
    "name", ["events.out.tfevents.1.h", "h.xplane.pb", "h.trace.json.gz", "job.out"]
)
def test_a_pipe_with_the_name_of_a_log_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    (tmp_path / "events.out.tfevents.2.h").touch()
    (run,) = find_runs([str(tmp_path)]).runs
    assert analyze_one(run).entry["verdict"]["sentence"]
    with pytest.raises(UnreadableFile, match="not a regular file"):
        files.open_binary(str(tmp_path / name))


@given(st.integers(1, 3000))
def test_the_labels_of_nested_events_take_as_many_rounds_as_the_depth_has_bits(depth: int) -> None:
    own = np.full(depth, NOTHING)
    own[0] = 7
    parent = np.arange(-1, depth - 1, dtype=np.int32)
    began = time.process_time()
    assert (inherit(own, parent) == 7).all()
    assert time.process_time() - began < 1
