"""Whoever waits for a large file sees how much of it has been read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import fsspec
import pytest

from stall_analyzer.decode import decode, pure
from stall_analyzer.decode.event_columns import TELL_EVERY, Core
from stall_analyzer.discover.discover import discover
from stall_analyzer.files import remote
from stall_analyzer.files.tfrecord import CHUNK_BYTES
from stall_analyzer.model.runs import EventFile, HostFile, ProfileSession, Run
from stall_analyzer.pipeline import analyze
from stall_analyzer.progress import READING_SHARE, Reading
from tests.event_files import file_name, record, scalar
from tests.xspace import Event, Line, host_space, read_with

CORES = [pytest.param(core, id=name) for name, core in (
    ("native", decode._native()), ("pure", pure.read_plane),
) if core is not None]  # fmt: skip
LONG = {"a stat that nobody reads": "x" * 2000}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen megabytes in a single line."""
    path = tmp_path_factory.mktemp("large") / "vm.xplane.pb"
    events = [Event("EagerExecute", 2000 * i, 1000, LONG) for i in range(8000)]
    path.write_bytes(host_space(Line("python", events)))
    return path


class Heard:
    def __init__(self) -> None:
        self.shares: list[float] = []
        self.texts: list[str] = []

    def __call__(self, share: float, text: str) -> None:
        self.shares.append(share)
        self.texts.append(text)


def run_of(*sizes: int, event_files: tuple[int, ...] = ()) -> Run:
    hosts = tuple(HostFile(f"h{i}", f"h{i}", "xplane", size) for i, size in enumerate(sizes))
    files = tuple(EventFile("e", "train", size) for size in event_files)
    return Run("a", "a", (ProfileSession("s", "s", hosts),), files)


# ---------------------------------------------------------------- decoders


@pytest.mark.parametrize("core", CORES)
def test_a_decoder_reports_now_and_then_where_it_is(core: Core, large: Path) -> None:
    size = large.stat().st_size
    told: list[int] = []
    read_with(core, large, told.append)
    assert len(told) == size // TELL_EVERY + 1
    assert all(TELL_EVERY <= later - sooner < 2 * TELL_EVERY for sooner, later in pairwise(told))
    assert told[-1] <= size


@pytest.mark.parametrize("core", CORES)
def test_a_listener_can_stop_a_decoder(core: Core, large: Path) -> None:
    def enough(done: int) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_with(core, large, enough)


def test_an_older_build_of_the_native_decoder_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "INTERFACE", decode.INTERFACE + 1)
    assert decode.backend() == "pure python"


# ---------------------------------------------------------------- shares


def test_files_have_their_part_of_the_reading() -> None:
    heard = Heard()
    reading = Reading(run_of(100, 300), heard)
    reading.file("one", 100)(100)
    reading.file("two", 300)(150)
    assert heard.shares == [READING_SHARE * part for part in (0, 0.25, 0.25, 0.625)]
    assert heard.texts[-1] == "reading two: 150 bytes of 300 bytes"


def test_a_byte_of_an_event_file_takes_longer_than_one_of_a_trace() -> None:
    heard = Heard()
    Reading(run_of(300, event_files=(10,)), heard).file("one", 300)(300)
    assert heard.shares == [0, READING_SHARE / 2]


def test_a_file_that_has_grown_does_not_count_for_more() -> None:
    heard = Heard()
    Reading(run_of(100, 300), heard).file("one", 100)(1_000)
    assert heard.shares[-1] == READING_SHARE / 4


def test_what_no_bar_could_show_is_not_told() -> None:
    heard = Heard()
    read = Reading(run_of(1_000_000), heard).file("one", 1_000_000)
    for done in range(0, 1_000_001, 100):
        read(done)
    assert 100 <= len(heard.shares) <= 160


# ---------------------------------------------------------------- whole analyses


def test_the_progress_of_an_analysis_moves_inside_one_file_and_never_back(large: Path) -> None:
    (run,) = discover([str(large)]).runs
    heard = Heard()
    analyze(run, heard)
    assert heard.shares == sorted(heard.shares)
    inside = [share for share in heard.shares if 0 < share < READING_SHARE]
    assert len(inside) >= 2
    assert heard.shares[-1] <= 1


def test_the_progress_moves_inside_an_event_file(tmp_path: Path) -> None:
    records = b"".join(record(scalar("batch_loss", 1.0), step=step) for step in range(2000))
    (tmp_path / file_name()).write_bytes(records * (3 * CHUNK_BYTES // len(records)))
    (run,) = discover([str(tmp_path)]).runs
    heard = Heard()
    analyze(run, heard)
    reading = [text for text in heard.texts if text.startswith("reading event files")]
    assert len(reading) >= 3


def test_a_trace_at_a_url_is_read_and_its_download_is_shown(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BLOCK_BYTES", 1 << 20)
    memory = fsspec.filesystem("memory")
    memory.pipe("/progress/plugins/profile/s/vm.xplane.pb", large.read_bytes())
    try:
        (run,) = discover(["memory://progress"]).runs
        heard = Heard()
        report = analyze(run, heard)
    finally:
        memory.rm("/progress", recursive=True)
    assert report.ledger is not None
    assert not [note for note in report.notes if note.level == "error"]
    assert len([share for share in heard.shares if 0 < share < READING_SHARE]) >= 2
