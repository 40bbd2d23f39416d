"""Files at URLs: read once, requested again after a cut connection, and told apart by version."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from stall_analyzer.decode.decode import read_trace
from stall_analyzer.decode.trace_cache import TraceCache
from stall_analyzer.discover.discover import find_runs
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.files import files, remote
from stall_analyzer.outcome import analyze_one
from tests.event_files import file_name
from tests.logdirs import PROFILE

SAMPLES = Path(__file__).resolve().parent.parent / "sample_logs"


class Shaky(MemoryFileSystem):
    """An object store in memory that counts what is read, and fails when told to."""

    protocol = "shaky"
    cachable = False
    fetched: ClassVar[Counter[str]] = Counter()
    failures: ClassVar[
        list[Exception | int]
    ] = []  # the next answers: an error, or only this many bytes

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.replace("shaky://", "memory://"))
        return stripped

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        data: bytes = super().cat_file(path, start=start, end=end)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            data = data[:failure]
        else:
            self.fetched[self._strip_protocol(path)] += len(data)
        return data

    def find(self, path: str, **more: Any) -> Any:
        found = super().find(path, **more)
        for about in found.values() if more.get("detail") else ():
            about["ETag"] = f"etag of {about['size']}"
        return found


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shaky]:
    fsspec.register_implementation("shaky", Shaky, clobber=True)
    monkeypatch.setattr(remote, "WAITS_S", (0.0, 0.0))
    Shaky.fetched, Shaky.failures = Counter(), []
    made = Shaky()
    made.store.clear()
    yield made
    made.store.clear()


def upload(store: Shaky, folder: Path, prefix: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            store.pipe_file(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())


# ---------------------------------------------------------------- once


def test_a_run_is_the_same_as_on_disk_and_each_byte_is_fetched_once(store: Shaky) -> None:
    upload(store, SAMPLES / "compile_tracing", "/logs")
    (local,) = find_runs([str(SAMPLES / "compile_tracing")]).runs
    (far,) = find_runs(["shaky://logs"]).runs
    expected, found = analyze_one(local).entry, analyze_one(far).entry
    assert found == {**expected, "folder": "logs"}
    read = {f"/logs/{path}" for path in ("train", "plugins")}
    assert all(path.startswith(tuple(read)) for path in store.fetched)
    assert {path: store.info(path)["size"] for path in store.fetched} == dict(store.fetched)
    assert len(store.fetched) == 2


def test_a_large_file_comes_in_blocks(store: Shaky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BLOCK_BYTES", 10)
    content = bytes(range(256))
    store.pipe_file("/logs/file", content)
    with files.open_binary("shaky://logs/file") as stream:
        stream.seek(-1, io.SEEK_END)
        assert stream.read() == content[-1:]
        stream.seek(0)
        assert stream.read() == content
    assert store.fetched["/logs/file"] == len(content)


def test_a_trace_tells_how_much_of_it_has_come(store: Shaky) -> None:
    fetched: list[int] = []
    upload(store, SAMPLES / "compile_tracing", "/logs")
    (run,) = find_runs(["shaky://logs"]).runs
    trace = read_trace(run.sessions[0].hosts[0], fetched.append)
    assert len(trace.events) > 0
    assert fetched[0] == run.sessions[0].hosts[0].size  # in one block


def test_traces_that_are_asked_for_again_are_not_fetched_again(
    store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a large cluster do not fit in memory, and are read up to three times."""
    upload(store, SAMPLES / "compile_tracing", "/logs")
    monkeypatch.setattr(TraceCache.__init__, "__defaults__", (1,))  # no room for another
    (host,) = [path for path in store.find("/logs") if path.endswith(".xplane.pb")]
    store.cp_file(host, host.replace("host.", "second."))
    (run,) = find_runs(["shaky://logs"]).runs
    entry = analyze_one(run).entry
    assert len(entry["hosts"]) == 2
    assert {path: store.info(path)["size"] for path in store.fetched} == dict(store.fetched)


def test_a_head_is_fetched_without_the_rest(store: Shaky) -> None:
    store.pipe_file("/logs/file", bytes(1000))
    assert files.read_head("shaky://logs/file", 10) == bytes(10)
    assert files.read_head("shaky://logs/file", 5000) == bytes(1000)
    assert store.fetched["/logs/file"] == 1010


def test_an_empty_file_is_not_asked_for(store: Shaky) -> None:
    store.pipe_file("/logs/file", b"")
    with files.open_binary("shaky://logs/file") as stream:
        assert stream.read() == b""
    assert files.read_head("shaky://logs/file", 10) == b""


# ---------------------------------------------------------------- cut


@pytest.mark.parametrize(
    "failures", [[ConnectionResetError("reset")], [3], [TimeoutError("slow"), OSError("strange")]]
)
def test_a_cut_connection_is_tried_again(store: Shaky, failures: list[Exception | int]) -> None:
    store.pipe_file("/logs/file", b"content")
    store.failures.extend(failures)
    with files.open_binary("shaky://logs/file") as stream:
        assert stream.read() == b"content"


def test_only_the_block_that_was_cut_is_fetched_again(
    store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BLOCK_BYTES", 4)
    store.pipe_file("/logs/file", b"0123456789")
    store.failures.append(2)  # of the first block
    with files.open_binary("shaky://logs/file") as stream:
        assert stream.read() == b"0123456789"
    assert store.fetched["/logs/file"] == 10


def test_a_connection_that_stays_cut_becomes_a_note(store: Shaky) -> None:
    upload(store, SAMPLES / "event_files_only", "/logs")
    (run,) = find_runs(["shaky://logs"]).runs
    store.failures.extend([ConnectionResetError("the network is down")] * 3)
    outcome = analyze_one(run)
    (note,) = [note for note in outcome.entry["notes"] if note["level"] == "error"]
    assert "the network is down" in note["text"]
    assert not outcome.final  # tried again in the next pass


@pytest.mark.parametrize("error", [PermissionError(), FileNotFoundError(), ValueError("no")])
def test_what_will_not_pass_is_not_tried_again(store: Shaky, error: Exception) -> None:
    store.pipe_file("/logs/file", b"content")
    store.failures.extend([error, ConnectionResetError()])
    with pytest.raises(UnreadableFile):
        files.open_binary("shaky://logs/file")
    assert len(store.failures) == 1


def test_missing_credentials_are_reported_at_once(store: Shaky) -> None:
    class NoCredentialsError(Exception):
        """Named as in botocore."""

    store.pipe_file("/logs/file", b"content")
    store.failures.extend([NoCredentialsError("Unable to locate credentials")] * 2)
    with pytest.raises(UnreadableFile, match="Unable to locate credentials"):
        files.open_binary("shaky://logs/file")
    assert len(store.failures) == 1


def test_expired_credentials_are_reported_with_what_to_do(store: Shaky) -> None:
    upload(store, SAMPLES / "event_files_only", "/logs")
    (run,) = find_runs(["shaky://logs"]).runs
    store.failures.append(PermissionError("The provided token has expired."))
    outcome = analyze_one(run)
    (note,) = [note for note in outcome.entry["notes"] if note["level"] == "error"]
    assert "renew them and try again" in note["text"]
    assert not outcome.final


def test_a_store_that_asks_for_fewer_requests_gets_more_time(
    store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "THROTTLED_WAITS_S", (0.0, 0.0))
    slow_down = OSError(16, "Please reduce your request rate.")
    store.pipe_file("/logs/file", b"content")
    store.failures.extend([slow_down] * 4)
    with files.open_binary("shaky://logs/file") as stream:
        assert stream.read() == b"content"
    store.failures.extend([slow_down] * 5)
    with pytest.raises(UnreadableFile, match="use a lower --jobs, or try again later"):
        files.open_binary("shaky://logs/file")


# ---------------------------------------------------------------- found


def test_one_listing_finds_all_and_tells_versions(
    store: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pipe_file(f"/logs/r/train/{file_name()}", b"abc")
    store.pipe_file(f"/logs/r/{PROFILE}/s/box.xplane.pb", b"x")
    monkeypatch.setattr(files, "info", None)  # it would be a request for each file
    (run,) = find_runs(["shaky://logs"]).runs
    assert run.event_files[0].stamp == "etag of 3"
    assert run.changed_unix_s is not None


def test_the_time_of_an_upload_is_not_the_time_of_writing(store: Shaky) -> None:
    """The times of its files show a session's time zone; an upload changes them."""
    upload(store, SAMPLES / "compile_tracing", "/logs")
    (run,) = find_runs(["shaky://logs"]).runs
    assert run.sessions[0].exported_unix_s is None


def test_new_files_are_seen(store: Shaky) -> None:
    store.pipe_file(f"/logs/a/{file_name()}", b"abc")
    assert len(find_runs(["shaky://logs"]).runs) == 1
    store.pipe_file(f"/logs/b/{file_name()}", b"abc")
    assert len(find_runs(["shaky://logs"]).runs) == 2


@pytest.mark.parametrize(("url", "extra"), [("s3://bucket/logs", "s3"), ("gs://bucket", "gcs")])
def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch, url: str, extra: str) -> None:
    def missing(url: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    found = find_runs([url])
    assert f"pip install 'tensorboard-plugin-stall[{extra}]'" in found.notes[0].text
