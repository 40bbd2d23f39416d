"""What somebody who waits sees: a bar in a terminal, lines in a log, nothing if it is quick."""

from __future__ import annotations

import io
import sys
import time

import pytest

from stall_analyzer.cli import progress_bar
from stall_analyzer.model.runs import EventFile, Run

LARGE = progress_bar.WORTH_BYTES


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return made


def run(name: str, size: int = 0) -> Run:
    return Run(name, name, (), (EventFile(name, "train", size),))


def test_the_bar_moves_while_one_large_run_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    large = run("a", LARGE)
    with progress_bar.reading(1, LARGE, "[/] a") as reading:
        reading.share(large, 0.5)
        reading.share(large, 0.25)  # heard late
        assert reading.weight_done == reading.weight / 2
        reading.done(large)
    assert "reading [/] a" in terminal.getvalue()
    assert "100%" in terminal.getvalue()
    assert "1 of 1 run," in terminal.getvalue()


def test_small_runs_have_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with progress_bar.reading(3, 1000) as reading:
        reading.done(run("a", 10))
    assert terminal.getvalue() == ""


def test_a_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with progress_bar.reading(100, 0) as reading:
        for number in range(50):
            now_s += 1.0
            reading.done(run(str(number)))
    assert capsys.readouterr().err == "30 of 100 runs, 1.0 per second, 1 min 10 s left\n"


def test_a_log_gets_nothing_if_nobody_waits(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar.reading(2, LARGE) as reading:
        reading.done(run("a", LARGE))
    assert capsys.readouterr().err == ""


def test_large_runs_count_for_more_than_small_ones() -> None:
    reading = progress_bar.BatchProgress(2, 9 * progress_bar.BASE_BYTES, lambda _: None)
    reading.done(run("small", 0))
    assert reading.weight_done / reading.weight == pytest.approx(1 / 11)


def test_what_is_remembered_is_only_of_the_runs_being_read() -> None:
    reading = progress_bar.BatchProgress(1000, 0, lambda _: None)
    for number in range(1000):
        reading.share(run(str(number)), 0.5)
        reading.done(run(str(number)))
    assert reading._begun == {}
    assert reading.weight_done == reading.weight


def test_runs_are_counted_while_they_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with progress_bar.finding() as seen:
        for runs in range(250):
            seen(runs + 1)
    assert "looking for runs: 200 found" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
