"""The recorder writes whole records, and does no harm to the training whatever the disk does."""

from __future__ import annotations

import errno
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_records import MarkRecord
from stall_analyzer.captures.look_records import DumpRecord
from tb_stall_plugin.capture.process import recorder as module
from tb_stall_plugin.capture.process.growing_event_file import (
    GrowingEventFile,
    LocalEventFile,
    open_event_file,
)
from tb_stall_plugin.capture.process.recorder import Recorder
from tests.capture.capture_logs import events, records, run, scalars, start, until


def test_scalars_and_records_are_in_one_event_file(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.scalar(Tag.LOSS, 0.5, 3)
    recorder.record(MarkRecord(what="epoch_begin", epoch=0, step=3))
    recorder.close("exit")
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".stall") and str(os.getpid()) in path.name
    assert scalars(tmp_path) == {Tag.LOSS: [(3, 0.5)]}
    mark, end = records(tmp_path)
    assert (mark["what"], mark["step"], end["reason"]) == ("epoch_begin", 3, "exit")
    assert mark["ns"] <= end["ns"]


def test_values_of_one_moment_are_one_event(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.scalars({Tag.LOSS: 1.0, Tag.LEARNING_RATE: 0.1}, 0, wall_ns=1_700_000_000_500_000_000)
    recorder.flush()
    header, event = events(tmp_path)
    assert header.file_version == "brain.Event:2"
    assert len(event.summary.value) == 2 and event.wall_time == 1_700_000_000.5


def test_each_note_is_written_once(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    for _ in range(3):
        recorder.note("warning", "no gradients")
    recorder.flush()
    assert [note["text"] for note in records(tmp_path, "note")] == ["no gradients"]


def test_tensorboard_reads_it_and_shows_the_records_as_texts(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator  # noqa: PLC0415

    recorder = Recorder(str(tmp_path))
    recorder.scalar(Tag.LOSS, 0.25, 7)
    recorder.record(DumpRecord(step=0, idle_s=5.0, reason="no_step"))
    recorder.close("exit")
    board = EventAccumulator(str(tmp_path)).Reload()
    (loss,) = board.Tensors(Tag.LOSS)
    assert (loss.step, loss.tensor_proto.float_val[0]) == (7, 0.25)
    texts = board.PluginTagToContent("text")
    assert set(texts) == {Tag.RECORD + "dump", Tag.RECORD + "end"}
    (dump,) = board.Tensors(Tag.RECORD + "dump")
    assert b'"no_step"' in dump.tensor_proto.string_val[0]


def test_many_threads_write_whole_records(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))

    def write() -> None:
        for number in range(200):
            recorder.scalar(Tag.LOSS, number, number)
            recorder.flush()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert len(scalars(tmp_path)[Tag.LOSS]) == 800


# ---------------------------------------------------------------- no harm


def test_what_cannot_be_recorded_is_swallowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(str(tmp_path))
    for _ in range(2):
        recorder.scalar(Tag.LOSS, "no number", 0)  # type: ignore[arg-type]
    recorder.scalar(Tag.LOSS, float("nan"), 1)
    recorder.flush()
    assert [step for step, _ in scalars(tmp_path)[Tag.LOSS]] == [1]
    assert len(caplog.records) == 1  # reported once


def test_an_unwritable_logdir_is_reported_once_and_training_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    recorder = Recorder(str(tmp_path / "file" / "logs"))
    for step in range(3):
        recorder.scalar(Tag.LOSS, 1.0, step)
        recorder.flush(urgent=True)
    recorder.close("exit")
    assert recorder.broken is not None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "Training continues" in caplog.text


class DiskThatFills:
    def __init__(self, file: GrowingEventFile) -> None:
        self._file = file
        self.is_full = False
        self.has_room = True

    def append(self, data: bytes, urgent: bool) -> None:
        if not self.has_room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._file.append(data, urgent)

    def last_word(self, data: bytes) -> Callable[[], object]:
        return self._file.last_word(data)

    def close(self) -> None:
        self._file.close()


def test_after_a_full_disk_nothing_is_lost_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    disks: list[DiskThatFills] = []

    def open_file(folder: str, name: str) -> GrowingEventFile:
        disks.append(DiskThatFills(open_event_file(folder, name)))
        return disks[-1]

    recorder = Recorder(str(tmp_path), open_file)
    recorder.scalar(Tag.LOSS, 1.0, 0)
    recorder.flush()
    disks[0].has_room = False
    recorder.scalar(Tag.LOSS, 2.0, 1)
    recorder.flush()
    recorder.scalar(Tag.LOSS, 3.0, 2)
    recorder.flush()
    disks[0].has_room = True
    recorder.flush()
    recorder.flush()
    assert len(disks) == 1
    assert [value for _, value in scalars(tmp_path)[Tag.LOSS]] == [1.0, 2.0, 3.0]
    (note,) = records(tmp_path, "note")
    assert "Nothing could be written" in note["text"] and "No space left" in note["text"]


def test_a_slow_disk_does_not_cost_the_end_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_FOR_WRITER_S", 0.01)
    is_writing, goes_on = threading.Event(), threading.Event()

    class SlowDisk(DiskThatFills):
        def append(self, data: bytes, urgent: bool) -> None:
            is_writing.set()
            goes_on.wait()
            super().append(data, urgent)

    recorder = Recorder(str(tmp_path), lambda *where: SlowDisk(open_event_file(*where)))
    writer = threading.Thread(target=recorder.flush)
    writer.start()
    is_writing.wait()
    closer = threading.Thread(target=recorder.close, args=("exit",))
    closer.start()
    closer.join(0.05)  # by then it has asked for the lock
    goes_on.set()
    writer.join()
    closer.join()
    assert [record["kind"] for record in records(tmp_path)] == ["end"]


def test_while_nothing_can_be_written_memory_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    monkeypatch.setattr(module, "MOST_QUEUED", 50)
    monkeypatch.setattr(module, "MOST_UNWRITTEN_BYTES", 1000)
    (tmp_path / "logs").write_text("in the way")
    recorder = Recorder(str(tmp_path / "logs"))
    for step in range(500):
        recorder.scalar(Tag.LOSS, 1.0, step)
        recorder.flush()
    (tmp_path / "logs").unlink()
    recorder.flush()
    recorder.flush()
    steps = [step for step, _ in scalars(tmp_path / "logs")[Tag.LOSS]]
    assert steps[0] == 0 and steps[-1] == 499  # the oldest and the newest; between them is a gap
    assert len(steps) < 150


def test_a_write_that_the_disk_cut_off_is_taken_back(tmp_path: Path) -> None:
    """The kernel really writes a part: the file may not grow beyond 1,000 bytes for a while."""
    script = """
        import resource, sys
        from pathlib import Path
        from tb_stall_plugin.capture.process.growing_event_file import LocalEventFile
        path = Path(sys.argv[1])
        file = LocalEventFile(path)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        file.append(b"a" * 600, False)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            file.append(b"b" * 600, False)
        except OSError as error:
            print(error.errno, file=sys.stderr)
        assert path.stat().st_size == 600
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        file.append(b"c" * 600, False)
        assert path.read_bytes() == b"a" * 600 + b"c" * 600
    """
    assert run(script, tmp_path / "file") == (0, f"{errno.EFBIG}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_file_that_cannot_be_fixed_is_left_for_a_new_one() -> None:
    file = LocalEventFile(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        file.append(b"data", urgent=True)
    assert file.is_full


def test_a_url_gets_uploads_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    folder = f"/{tmp_path.name}"
    recorder = Recorder(f"memory:/{folder}")
    recorder.scalar(Tag.LOSS, 1.0, 0)
    recorder.flush()  # the file is there at once
    (name,) = memory.ls(folder, detail=False)
    size = memory.size(name)
    recorder.scalar(Tag.LOSS, 2.0, 1)
    recorder.flush()
    assert memory.size(name) == size
    recorder.close("exit")
    (tmp_path / Path(name).name).write_bytes(memory.cat_file(name))
    assert [value for _, value in scalars(tmp_path)[Tag.LOSS]] == [1.0, 2.0]
    assert records(tmp_path)[-1]["kind"] == "end"


# ---------------------------------------------------------------- processes

WRITES_UNTIL_KILLED = """
    import sys, time
    from tb_stall_plugin.capture.process.recorder import Recorder
    recorder = Recorder(sys.argv[1])
    for step in range(1_000_000):
        recorder.scalar("stall/loss", step, step)
        recorder.flush()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_what_was_flushed_survives_a_kill(tmp_path: Path) -> None:
    child = start(WRITES_UNTIL_KILLED, tmp_path)
    until(lambda: any(path.stat().st_size > 10_000 for path in tmp_path.iterdir()))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    steps = [step for step, _ in scalars(tmp_path, was_killed=True)[Tag.LOSS]]
    assert steps == list(range(len(steps))) and len(steps) > 100
    assert len(whole) > 10_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    script = """
        import os, sys
        from tb_stall_plugin.capture.process.recorder import Recorder
        recorder = Recorder(sys.argv[1])
        recorder.scalar("stall/loss", 1.0, 0)
        child = os.fork()
        recorder.scalar("stall/loss", 2.0, 1)
        recorder.close("exit")
        if child:
            os.waitpid(child, 0)
    """
    assert run(script, tmp_path) == (0, "")
    found: dict[str, Any] = scalars(tmp_path)
    assert found[Tag.LOSS] == [(0, 1.0), (1, 2.0)]
    assert len(records(tmp_path, "end")) == 1
