"""Where each thread is, in Python and in the kernel."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tb_stall_plugin.capture.process import thread_stacks
from tb_stall_plugin.capture.process.current_frames import stack_of
from tests.capture.capture_logs import until

HERE = __file__
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


@contextmanager
def waiting(*names: str) -> Iterator[None]:
    """Threads with these names, all in `wait_here`."""
    release = threading.Event()

    def wait_here() -> None:
        release.wait()

    threads = [threading.Thread(target=wait_here, name=name) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        release.set()
        for thread in threads:
            thread.join()


def test_the_main_thread_comes_first_innermost_frame_first() -> None:
    main, *_ = thread_stacks.python_threads()
    assert main.main and main.count == 1
    mine = [frame for frame in main.frames if frame.startswith(f"{HERE}:")]
    assert len(mine) == 1
    line, function = mine[0].removeprefix(f"{HERE}:").split(" ")
    assert line.isdecimal() and function.endswith("innermost_frame_first")
    assert main.frames.index(mine[0]) < 2


def test_threads_in_the_same_place_are_one_entry() -> None:
    with waiting("a", "b", "c"):
        until(lambda: any(entry.count == 3 for entry in thread_stacks.python_threads()))
        entry = next(entry for entry in thread_stacks.python_threads() if entry.count == 3)
    assert entry.name in "abc" and not entry.main
    assert any("wait_here" in frame for frame in entry.frames)


def test_threads_of_the_capture_are_left_out() -> None:
    with waiting("stall-watchdog"):
        assert not any("stall" in entry.name for entry in thread_stacks.python_threads())


def test_a_deep_stack_keeps_the_lines_of_the_user_that_are_in_its_middle() -> None:
    library = "/env/lib/python3.11/site-packages/tensorflow/python/ops/math_ops.py"
    lines = [f"{library}:{n} multiply" for n in range(200)]
    lines[60] = "/home/me/train.py:30 step"
    kept = thread_stacks.cut(lines)
    assert lines[60] in kept and len(kept) <= thread_stacks.MOST_FRAMES + 1


def test_a_deep_stack_keeps_the_call_that_trains() -> None:
    """In a notebook, there is much around it; and the line that calls it explains nothing."""
    library = "/env/lib/python3.11/site-packages"
    lines = [f"{library}/tensorflow/python/ops/math_ops.py:{n} multiply" for n in range(200)]
    lines[100] = f"{library}/keras/src/backend/tensorflow/trainer.py:399 TensorFlowTrainer.fit"
    lines[101] = "/home/me/train.py:88 <module>"
    assert {*lines[100:102]} <= {*thread_stacks.cut(lines)}


def test_a_deep_stack_keeps_both_its_ends() -> None:
    def deep(levels: int) -> tuple[str, ...]:
        return deep(levels - 1) if levels else thread_stacks.frames_of(stack_of(sys._getframe()))

    frames = deep(500)
    assert len(frames) == thread_stacks.MOST_FRAMES + 1 and frames.count(thread_stacks.CUT) == 1
    assert "deep" in frames[0] and "deep" not in frames[-1]


def test_an_interrupted_thread_is_shown_as_it_was() -> None:
    def handler() -> tuple[str, ...]:
        return inner()

    def inner() -> tuple[str, ...]:
        return thread_stacks.frames_of(stack_of(sys._getframe()))

    thread_stacks.HIDDEN.add(handler.__code__)
    try:
        frames = handler()
    finally:
        thread_stacks.HIDDEN.remove(handler.__code__)
    assert frames[0].endswith("shown_as_it_was")


def test_an_exception_is_followed_to_where_it_was_raised() -> None:
    def fail() -> None:
        raise ValueError

    try:
        fail()
    except ValueError as error:
        frames = thread_stacks.frames_of_traceback(error.__traceback__)
    assert frames[0].endswith("fail") and frames[1].endswith("where_it_was_raised")


@linux
def test_the_kernel_says_what_threads_wait_in() -> None:
    def is_seen() -> bool:
        found = thread_stacks.native_threads()
        waits = any(entry.state == "S" and "futex" in entry.wait for entry in found)
        runs = any(entry.state == "R" and not entry.wait for entry in found)
        return sum(entry.count for entry in found) >= 3 and waits and runs

    with waiting("a", "b"):
        until(is_seen)


def test_without_proc_there_are_no_native_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_stacks, "PROCESS", Path("/nonexistent"))
    assert thread_stacks.native_threads() == ()
