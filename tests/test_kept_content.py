"""An event file that grows: what was read of it is not read again, unless it was made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from stall_analyzer.events import content_reader, kept_content
from stall_analyzer.events.event_files import read_events
from stall_analyzer.events.event_scalars import HAS_NATIVE
from stall_analyzer.events.kept_content import load_content
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.runs import EventFile, Run
from tests import event_files as write
from tests.test_events import MODEL
from tests.test_events_equal import assert_equal


@pytest.fixture(autouse=True)
def small_files_are_worth_keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_content, "WORTH_KEEPING_BYTES", 1)
    monkeypatch.setattr(kept_content, "WORTH_ADDING_BYTES", 1)


def records(*steps: int) -> bytes:
    zeros = write.buckets("layer", (0.0, 0.0, 4.0))
    return b"".join(
        write.record(write.scalar("loss", step / 2), step=step, at_s=write.START_S + step)
        + write.record(zeros, step=step, at_s=write.START_S + step)
        for step in steps
    )


BEGIN = (
    write.framed(write.file_version())
    + write.record(write.model("{ no JSON"))
    + write.record(write.model(MODEL))
    + write.framed(write.graph(100))
    + records(1)[:40]
    + b"\xff"
    + records(1)[41:]
    + records(*range(2, 20))
)


def event_file(path: Path) -> EventFile:
    return EventFile(str(path), "train", path.stat().st_size)


def look(path: Path, kept: Path | None) -> EventLog:
    return read_events(Run(".", str(path.parent), (), (event_file(path),)), kept_in=kept)


def known_bytes(path: Path, kept: Path) -> int:
    return load_content(kept, event_file(path)).so_far.position


def test_a_second_look_continues_where_the_first_ended(tmp_path: Path) -> None:
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN + records(20)[:10])  # the last record is only half there
    first = look(path, kept)
    assert known_bytes(path, kept) == len(BEGIN)
    assert_equal(first, look(path, None))

    path.write_bytes(BEGIN + records(20, 21, 22))
    second = look(path, kept)
    assert known_bytes(path, kept) == path.stat().st_size
    assert_equal(second, look(path, None))
    assert second.histograms["layer"].zero_run == first.histograms["layer"].zero_run + 3
    assert second.keras is not None
    assert any("Damaged records" in note.text for note in second.notes)


def test_a_little_more_is_read_again_rather_than_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_content, "WORTH_ADDING_BYTES", len(records(20, 21)) + 1)
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    look(path, kept)
    for last, known in ((22, len(BEGIN)), (23, len(BEGIN + records(20, 21, 22)))):
        path.write_bytes(BEGIN + records(*range(20, last)))
        assert_equal(look(path, kept), look(path, None))
        assert known_bytes(path, kept) == known


@pytest.mark.skipif(not HAS_NATIVE, reason="protobuf parses every record")
def test_a_layout_that_was_known_is_known_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    look(path, kept)
    path.write_bytes(BEGIN + records(20, 21))
    expected = look(path, None)
    with monkeypatch.context() as without_protobuf:
        without_protobuf.setattr(content_reader, "parsed", None)
        assert_equal(look(path, kept), expected)
    monkeypatch.setenv("STALL_PURE_PYTHON", "1")
    path.write_bytes(BEGIN + records(20, 21, 22))
    assert_equal(look(path, kept), look(path, None))


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    look(path, kept)
    changed = bytearray(BEGIN + records(30))
    monkeypatch.setattr(kept_content, "_places", lambda stream, size: "the same")
    look(path, kept)  # nothing is known by that mark, so all is read and kept by it
    at = BEGIN.index(records(5))
    changed[at : at + len(records(5))] = records(6)[: len(records(5))]
    path.write_bytes(bytes(changed))
    assert 5 in look(path, kept).train["loss"].step


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(BEGIN[:-200], id="cut"),
        pytest.param(records(*range(100, 140)), id="another one, longer"),
        pytest.param(BEGIN[: len(BEGIN) // 2] + records(*range(50, 90)), id="its second half anew"),
        pytest.param(b"rubbish" * 1000, id="something else"),
    ],
)
def test_a_file_that_was_replaced_is_read_again(tmp_path: Path, now: bytes) -> None:
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    look(path, kept)
    path.write_bytes(now)
    assert_equal(look(path, kept), look(path, None))


def test_what_is_kept_may_be_damaged_or_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    look(path, kept)
    (file,) = kept.rglob(f"*{kept_content.SUFFIX}")
    whole = file.read_bytes()
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        assert known_bytes(path, kept) == 0
        file.write_bytes(whole[:at])
        assert known_bytes(path, kept) == 0
    file.write_bytes(whole)
    monkeypatch.setattr(kept_content, "code_state", lambda *folders: "another")
    assert known_bytes(path, kept) == 0


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    kept.write_text("a file")
    assert_equal(look(path, kept), look(path, None))


def test_small_files_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    path, kept = tmp_path / write.file_name(), tmp_path / "kept"
    path.write_bytes(BEGIN)
    look(path, kept)
    assert not kept.exists()
