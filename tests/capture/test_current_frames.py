"""Looks at all threads in a way that can neither stop nor crash them."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from tb_stall_plugin.capture.process.current_frames import with_current_stacks
from tb_stall_plugin.capture.process.stack_sampler import Doing, StackSampler
from tb_stall_plugin.capture.process.thread_stacks import (
    main_rests,
    native_threads,
    python_threads,
)
from tests.patience import PATIENCE_S


def _has_me(frames: dict[int, list[FrameType]]) -> bool:
    return threading.get_ident() in frames


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """Collections that begin; there is one for each new object."""
    begun: list[str] = []

    def note(phase: str, _: object) -> None:
        begun.append(phase)

    usual = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    yield begun
    gc.set_threshold(*usual)
    gc.callbacks.remove(note)


def test_no_garbage_is_collected_during_a_look(
    collections: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Caller:
        """Like a frame: the next one is created when it is asked for."""

        @property
        def f_back(self) -> None:
            before = len(collections)
            made: list[object] = [{} for _ in range(100)]
            seen.append(len(collections) - before)
            assert made

    monkeypatch.setattr("sys._current_frames", lambda: {1: Caller()})
    with_current_stacks(len)
    assert seen == [0]
    assert gc.isenabled()


# Threads that come and go, and a collector that lets them run whenever the looking thread creates
# an object. With garbage collected in between, Python 3.11 crashed within a second.
STRESS = """import gc, sys, threading, time
from tb_stall_plugin.capture.process.thread_stacks import python_threads

looks = threading.main_thread().ident
over = False

def down(levels):
    return down(levels - 1) if levels else time.sleep(0.0003)

def come_and_go():
    while not over:
        thread = threading.Thread(target=down, args=(12,))
        thread.start()
        thread.join()

def let_others_run(phase, about):
    if threading.get_ident() == looks:
        time.sleep(0.001)

helpers = [threading.Thread(target=come_and_go) for _ in range(3)]
for helper in helpers:
    helper.start()
gc.callbacks.append(let_others_run)
gc.set_threshold(20, 2, 2)
ends_s = time.monotonic() + 4.0
while time.monotonic() < ends_s:
    python_threads()
over = True
"""


def test_threads_may_return_while_they_are_looked_at() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", STRESS],
        check=False, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        assert with_current_stacks(_has_me)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_answers_even_if_nobody_releases_the_lock() -> None:
    """As in a child that was forked while another thread looked."""
    from tb_stall_plugin.capture.process import current_frames as module  # noqa: PLC0415

    holder = threading.Thread(target=module._lock.acquire)
    holder.start()
    holder.join()
    try:
        assert with_current_stacks(_has_me)
    finally:
        module._lock = threading.RLock()


class Kept:
    """An object that a function holds in a variable."""


def _sampled(thread: int) -> None:
    sampler = StackSampler(lambda: Doing(thread, "python", ""), lambda record: None, pytest.fail)
    sampler.look(passed_ns=1)


@pytest.mark.parametrize(
    "look",
    [
        _sampled,
        lambda thread: python_threads(),
        lambda thread: native_threads(),
        lambda thread: main_rests(),
    ],
    ids=["the sampler", "Python's threads", "native threads", "does main rest"],
)
def test_nothing_that_was_seen_is_kept_alive(look: Callable[[int], object]) -> None:
    """Without garbage collection: programs turn it off, and what TensorFlow ends too late
    may wait forever."""
    seen, is_over = threading.Event(), threading.Event()
    kept: list[weakref.ref[Kept]] = []

    def looked_at() -> None:
        variable = Kept()
        kept.append(weakref.ref(variable))
        seen.set()
        is_over.wait()

    gc.disable()
    try:
        thread = threading.Thread(target=looked_at)
        thread.start()
        seen.wait()
        look(thread.ident or 0)
        is_over.set()
        thread.join()
        assert kept[0]() is None
    finally:
        gc.enable()


def test_nor_is_the_function_that_looks() -> None:
    def looks() -> weakref.ref[Kept]:
        variable = Kept()
        python_threads()
        return weakref.ref(variable)

    gc.disable()
    try:
        assert looks()() is None
    finally:
        gc.enable()
