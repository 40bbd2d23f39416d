"""`stall-analyze watch`: files that are still being written, and what it shows."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from stall_analyzer.cli import main as cli
from stall_analyzer.cli.watch_views import LinesView, TerminalView
from stall_analyzer.files.tfrecord import framed
from stall_analyzer.live.followed_file import FollowedFile
from tests import captures
from tests.captures import NS, START_NS
from tests.live_logs import HEADER, TRACED, USUAL, LiveLog, books, epoch, fit, looked_at, worker


@pytest.fixture
def log(tmp_path: Path) -> LiveLog:
    return LiveLog(tmp_path)


# ---------------------------------------------------------------- files that grow


def test_a_look_reads_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / captures.file_name()
    path.write_bytes(HEADER + captures.start())
    file = FollowedFile(str(path))
    assert len(file.read_new()[0]) == 1
    assert file.read_new() == ([], False)
    with path.open("ab") as stream:
        stream.write(fit() + captures.scalars(1.0, 1, step_seconds=0.5))
    record, scalar = file.read_new()[0]
    assert record.what == "fit_begin"  # type: ignore[union-attr]
    assert scalar == ("step_seconds", 1, START_NS + NS, 0.5)


@pytest.mark.parametrize("cut", [1, 11, 12, 13, 40, -5, -1])
def test_a_half_written_record_is_read_when_it_is_complete(tmp_path: Path, cut: int) -> None:
    path = tmp_path / captures.file_name()
    path.write_bytes(HEADER + fit()[:cut])
    file = FollowedFile(str(path))
    assert file.read_new()[0] == []
    path.write_bytes(HEADER + fit())
    assert len(file.read_new()[0]) == 1


def test_long_records_are_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / captures.file_name()
    path.write_bytes(HEADER + captures.record("note", 1.0, level="info", text="x" * 100_000))
    assert len(FollowedFile(str(path)).read_new()[0]) == 1


@pytest.mark.parametrize("junk", [framed(b"no event"), b"\xff" * 64, framed(b"")])
def test_junk_between_the_records_is_not_an_error(log: LiveLog, junk: bytes) -> None:
    log.append(captures.start(), fit(), epoch(0.0), junk, books(0.0, [USUAL]))
    assert log.state(1.0).trains


def test_a_file_that_was_truncated_is_read_again(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 5))
    followed = log.followed()
    assert looked_at(followed, 5.0).processes[0].step == 5
    path = log.folder / captures.file_name()
    path.write_bytes(HEADER + captures.start() + fit() + epoch(0.0))
    assert looked_at(followed, 5.0).processes[0].step == 0


def test_a_file_that_is_gone_for_a_moment_changes_nothing(log: LiveLog) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 5))
    followed = log.followed()
    looked_at(followed, 5.0)
    (log.folder / captures.file_name()).unlink()
    assert looked_at(followed, 5.0).processes[0].step == 5


# ---------------------------------------------------------------- the command


def test_a_run_that_is_over_gets_the_usual_verdict(
    log: LiveLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [TRACED, *[USUAL] * 9]))
    log.append(captures.mark("epoch_end", 20.0, 0, 10), captures.mark("fit_end", 20.0, None, 10))
    log.append(captures.record("end", 21.0, reason="exit"))
    assert cli.main(["watch", str(log.folder), "--once"]) == 0
    said = capsys.readouterr().out
    assert f"{log.folder.name} has ended. " in said and "compile" in said


def test_it_says_how_many_older_runs_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "older", "new"):
        (folder := tmp_path / name).mkdir()
        LiveLog(folder).append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 9))
        ago_s = 0 if name == "new" else 1000
        for file in folder.iterdir():
            os.utime(file, (time.time() - ago_s,) * 2)
    cli.main(["watch", str(tmp_path), "--once"])
    said = capsys.readouterr().out
    assert said.startswith("2 runs that ended earlier are not shown; to see all: stall-analyze")
    assert "new" in said


def test_it_says_that_there_is_nothing_to_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["watch", str(tmp_path), "--once"]) == 3
    assert "Nothing has been captured in" in capsys.readouterr().out
    assert cli.main(["watch", str(tmp_path / "later"), "--once"]) == 3
    assert "does not exist yet." in capsys.readouterr().out


def test_an_interrupt_ends_it_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    assert cli.main(["watch", str(tmp_path / "later")]) == 0
    assert capsys.readouterr().out.endswith("does not exist yet; waiting.\n")


def test_help_needs_neither_numpy_nor_rich() -> None:
    script = (
        "import sys; from stall_analyzer.cli.main import main\n"
        "try: main(['watch', '--help'])\n"
        "except SystemExit: print(sorted({'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "LOGDIR" in done.stdout and done.stdout.endswith("[]\n")


def test_a_terminal_shows_bar_and_late_worker_and_keeps_what_is_told(log: LiveLog) -> None:
    worker(log, 0, [{"step": 1.0}] * 10)
    worker(log, 1, [{"wait": 0.8, "step": 0.2}] * 10)
    stream = io.StringIO()
    view = TerminalView(Console(file=stream, force_terminal=True, color_system=None, width=100))
    view.show([log.state(10.0)], "waiting")
    view.tell("run0 has ended.")
    view.show([], "waiting")
    view.close()
    shown = stream.getvalue()
    assert "worker 0: epoch 1" in shown
    assert "worker 1 (late): epoch 1, step 10 of 50, 80% waiting for input" in shown
    assert "iiiiiiiiiiiiiiiiiiiiiiii======  input 80%  compute 20%" in shown
    assert "run0 has ended." in shown


def test_a_name_cannot_change_the_terminal() -> None:
    stream = io.StringIO()
    view = TerminalView(Console(file=stream, force_terminal=True, color_system=None))
    view.tell("run\x1b[2J [bold]1[/]")
    view.close()
    assert "run?[2J [bold]1[/]" in stream.getvalue()


def test_a_log_gets_a_line_when_something_happens_and_not_each_second(
    log: LiveLog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    log.append(captures.start(), fit(), epoch(0.0), books(0.0, [USUAL] * 5))
    view, hanging = LinesView(sys.stdout), [log.state(5.0)]
    for _ in range(30):
        view.show(hanging, "")
        now_s += 1.0
    lines = capsys.readouterr().out.count("\n")
    log.append(books(5.0, [USUAL] * 5))
    view.show([log.state(10.0)], "")
    assert (lines, capsys.readouterr().out.count("\n")) == (1, 1)
