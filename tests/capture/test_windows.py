"""Profiled windows when things go wrong: hangs, memory, a full disk, a fork."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_stall_plugin.capture.process.pulse import Pulse
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.training import windows as module
from tb_stall_plugin.capture.training.tf_profiler import a_profiler_runs
from tb_stall_plugin.capture.training.window_plan import WindowPlan
from tb_stall_plugin.capture.training.windows import Windows
from tests.capture import capture_logs
from tests.capture.small_trainings import profiles, tf


def new_windows(folder: Path) -> Windows:
    return Windows(str(folder), Recorder(str(folder)), Pulse(), WindowPlan(0.05), lambda why: None)


def step(windows: Windows) -> None:
    windows._pulse.step_done()
    windows.steps_ended([0.1])


@pytest.fixture
def windows(tmp_path: Path) -> Iterator[Windows]:
    """Windows of a fit that has done two steps; one is open."""
    opened = new_windows(tmp_path)
    opened.fit_begins(None, range(0))
    for _ in range(2):
        tf.square(2.0)
        step(opened)
    yield opened
    opened.finish()


def saved(windows: Windows, folder: Path) -> list[dict[str, Any]]:
    windows._recorder.flush(urgent=True)
    records = capture_logs.records(folder, "window")
    return [record for record in records if record["what"] != "opened"]


def test_a_hang_saves_what_led_to_it_and_then_what_still_moves(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANG_WINDOW_S", 0.05)
    windows.hang()
    windows.finish()
    before, during = saved(windows, tmp_path)
    assert (before["reason"], before["ended_by"]) == ("start", "hang")
    assert (during["reason"], during["first_step"]) == ("hang", 2)
    assert len(profiles(tmp_path)) == 2  # from the same second


def test_a_hang_that_comes_too_often_opens_no_window(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows.plan, "opens_for_hang", lambda: False)
    windows.hang()
    assert [record["reason"] for record in saved(windows, tmp_path)] == ["start"]
    assert not a_profiler_runs()


def start_and_stop(folder: str) -> None:
    tf.profiler.experimental.start(logdir=folder)
    tf.profiler.experimental.stop()


def profile(folder: str) -> None:
    with tf.profiler.experimental.Profile(folder):
        tf.square(3.0)


@pytest.mark.parametrize("run_profiler", [start_and_stop, profile])
def test_a_script_that_starts_the_profiler_gets_it(
    windows: Windows, tmp_path: Path, run_profiler: Callable[[str], None]
) -> None:
    run_profiler(str(tmp_path / "theirs"))
    assert len(profiles(tmp_path / "theirs")) == 1
    capture_logs.until(lambda: saved(windows, tmp_path))
    [record] = saved(windows, tmp_path)
    assert (record["what"], record["reason"]) == ("saved", "start")
    [note] = capture_logs.records(tmp_path, "note")
    assert "the capture stopped profiling" in note["text"]


def test_ours_waits_while_the_script_uses_the_profiler(windows: Windows, tmp_path: Path) -> None:
    with tf.profiler.experimental.Profile(str(tmp_path / "theirs")):
        capture_logs.until(lambda: saved(windows, tmp_path))
        for _ in range(27):
            step(windows)
    windows.finish()
    assert len(saved(windows, tmp_path)) == 1


def test_the_functions_of_the_profiler_are_as_before_when_no_window_is_open(
    windows: Windows,
) -> None:
    windows.finish()
    assert tf.profiler.experimental.start.__module__ == tf.profiler.experimental.stop.__module__
    assert tf.profiler.experimental.Profile.__enter__.__globals__["start"] is (
        tf.profiler.experimental.start
    )


def test_a_window_is_closed_when_memory_grows_fast(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows._growth, "is_too_much", lambda: True)
    capture_logs.until(lambda: saved(windows, tmp_path))
    [record] = saved(windows, tmp_path)
    assert record["ended_by"] == "memory"


def test_the_end_of_the_process_saves_the_open_window(windows: Windows, tmp_path: Path) -> None:
    windows.finish()
    [record] = saved(windows, tmp_path)
    assert (record["what"], record["ended_by"]) == ("saved", "end")


def test_a_full_disk_ends_the_profiling_and_leaves_nothing_behind(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(windows._files, "publish", full)
    windows.finish()
    [record] = saved(windows, tmp_path)
    assert record["what"] == "failed"
    assert "No space left" in record["why"]
    assert not list(tmp_path.glob(".stall-*"))
    windows.fit_begins(None, range(0))
    assert not a_profiler_runs()


def test_no_profiler_keeps_running_after_a_failure(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError("out of order")

    monkeypatch.setattr(windows.plan, "step_ended", fails)
    assert a_profiler_runs()
    step(windows)
    assert not a_profiler_runs()


def test_no_profiler_keeps_running_if_no_thread_can_save_it(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more_threads(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", no_more_threads)
        windows.fit_ends()
    assert not a_profiler_runs()
    assert not list(tmp_path.glob(".stall-*"))


def test_a_forked_child_leaves_the_profiler_to_its_parent(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: windows._process + 1)
        windows.finish()
        step(windows)
    assert a_profiler_runs()


def test_steps_of_another_profiler_are_kept_free(tmp_path: Path) -> None:
    windows = new_windows(tmp_path)
    windows.fit_begins(None, range(2, 5))
    for _ in range(4):
        step(windows)
    windows.finish()
    assert saved(windows, tmp_path)[-1]["last_step"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="threads do not have their own priority")
def test_a_profile_is_saved_on_cores_that_the_training_leaves_idle(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nice() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    seen: list[int] = []
    monkeypatch.setattr(windows._profiler, "stop", lambda save=True: seen.append(nice()))
    before = nice()
    windows.first_epoch_ended()
    windows.finish()
    assert seen[0] >= module.NICE
    assert nice() == before
