"""Traces of many hosts: only a few are in memory, and one that was dropped is read again."""

from __future__ import annotations

from pathlib import Path

from stall_analyzer.decode.decode import read_trace
from stall_analyzer.decode.trace_cache import TraceCache
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Trace
from tests.clusters import PUNCTUAL, steadily, write_job


class CountedReads:
    def __init__(self) -> None:
        self.hosts: list[str] = []

    def __call__(self, file: HostFile) -> Trace:
        self.hosts.append(file.host)
        return read_trace(file)


def hosts_read(folder: Path, room: float) -> list[str]:
    """Which files are read when three hosts are requested twice, with room for that many of
    them."""
    files = write_job(folder, {name: steadily(PUNCTUAL) for name in "abc"})
    reads = CountedReads()
    cache = TraceCache(reads, round(room * max(file.size for file in files)))
    traces = [cache.put(file, reads(file)) for file in files]
    assert [trace.read().host for trace in traces] == ["a", "b", "c"]
    return reads.hosts


def test_what_fits_is_read_once(tmp_path: Path) -> None:
    assert hosts_read(tmp_path, room=3) == ["a", "b", "c"]


def test_what_does_not_fit_is_read_again(tmp_path: Path) -> None:
    assert hosts_read(tmp_path, room=2) == ["a", "b", "c", "a", "b", "c"]


def test_one_that_is_larger_than_the_cache_is_kept_alone(tmp_path: Path) -> None:
    assert hosts_read(tmp_path, room=0.1) == ["a", "b", "c", "a", "b", "c"]
    (file, *_) = write_job(tmp_path, {"a": steadily(PUNCTUAL), "b": steadily(PUNCTUAL)})
    reads = CountedReads()
    trace = TraceCache(reads, room_bytes=1).put(file, reads(file))
    assert trace.read() is trace.read()
    assert reads.hosts == ["a"]
