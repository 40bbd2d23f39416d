"""Which locks threads hold and wait for, as far as their frames tell."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stall_analyzer.captures.look_records import NamedLock
from tb_stall_plugin.capture.process.current_frames import with_current_stacks
from tb_stall_plugin.capture.process.locks import Locks, locks_by_thread
from tests.capture.capture_logs import until

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="instructions do not know their columns"
)
A_LONG_TIME_S = 60.0


@pytest.fixture(autouse=True)
def untraced() -> Iterator[None]:
    """What a debugger, or coverage, traces is left alone."""
    tracing = threading.gettrace()
    threading.settrace(None)
    yield
    if tracing is not None:
        threading.settrace(tracing)


class Shelf:
    """Locks as an object has them."""

    def __init__(self) -> None:
        self.plain = threading.Lock()
        self.owned = threading.RLock()
        self.condition = threading.Condition()


@contextmanager
def blocked(lock: threading.Lock, *targets: Callable[[], None]) -> Iterator[list[Locks]]:
    """What is seen of threads, each of which waits for `lock` in the end."""
    lock.acquire()
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    try:
        until(lambda: all(seen.waits_for is not None for seen in locks_of(threads)))
        yield locks_of(threads)
    finally:
        lock.release()
        for thread in threads:
            thread.join()


def locks_of(threads: list[threading.Thread]) -> list[Locks]:
    seen = with_current_stacks(locks_by_thread)
    return [seen[thread.ident or 0] for thread in threads]


def named(lock: object, name: str) -> NamedLock:
    return NamedLock(id(lock), name)


def test_with_holds_what_it_is_inside_of_and_waits_for_what_it_enters() -> None:
    first, second, last = threading.Lock(), threading.Lock(), threading.Lock()

    def work() -> None:
        with first:
            inner()

    def inner() -> None:
        with second, last:
            pass

    with blocked(last, work) as [seen]:
        assert seen.waits_for == named(last, "last")
        assert set(seen.holds) == {named(first, "first"), named(second, "second")}


def test_the_first_of_several_locks_is_waited_for_without_the_second() -> None:
    first, second = threading.Lock(), threading.Lock()

    def work() -> None:
        with first, second:
            pass

    with blocked(first, work) as [seen], second:
        assert seen == Locks(named(first, "first"), ())


def test_a_lock_may_be_held_by_a_caller() -> None:
    shelf, other = Shelf(), threading.Lock()

    def work() -> None:
        with shelf.plain:
            [*map(inner, "a")]

    def inner(_: str) -> None:
        other.acquire(timeout=A_LONG_TIME_S)
        other.release()

    with blocked(other, work) as [seen]:
        assert seen == Locks(named(other, "other"), (named(shelf.plain, "shelf.plain"),))


def test_a_lock_is_held_until_it_is_finally_released() -> None:
    first, second, merely_acquired = threading.Lock(), threading.Lock(), threading.Lock()

    def work() -> None:
        merely_acquired.acquire()
        first.acquire()
        try:
            with second:
                pass
        finally:
            first.release()

    with blocked(second, work) as [seen]:
        assert seen == Locks(named(second, "second"), (named(first, "first"),))


def test_an_rlock_knows_its_owner_however_it_was_acquired() -> None:
    shelf, last = Shelf(), threading.Lock()

    def hold() -> None:
        shelf.owned.acquire()
        with last:
            shelf.owned.release()

    with blocked(last, hold) as [before]:
        assert before.holds == ()  # nobody names it
        waiting = threading.Thread(target=lambda: shelf.owned.acquire(timeout=A_LONG_TIME_S))
        waiting.start()
        until(lambda: locks_of([waiting])[0].waits_for is not None)
        seen = with_current_stacks(locks_by_thread)
        owner = [
            locks for locks in seen.values() if named(shelf.owned, "shelf.owned") in locks.holds
        ]
        assert [locks.waits_for for locks in owner] == [named(last, "last")]
    waiting.join()


def test_a_condition_that_waits_has_given_its_lock_back() -> None:
    shelf, other = Shelf(), threading.Lock()

    def wait() -> None:
        with shelf.condition:
            shelf.condition.wait(A_LONG_TIME_S)

    def notify() -> None:
        with shelf.condition, other:
            shelf.condition.notify_all()

    waiting = threading.Thread(target=wait)
    waiting.start()
    lock = vars(shelf.condition)["_lock"]
    with blocked(other, notify) as [seen]:
        assert seen == Locks(named(other, "other"), (named(lock, "shelf.condition"),))
        assert locks_of([waiting]) == [Locks()]
    waiting.join()


def test_entering_a_condition_is_waiting_for_its_lock() -> None:
    shelf = Shelf()

    def enter() -> None:
        with shelf.condition:
            pass

    lock = vars(shelf.condition)["_lock"]
    with blocked(lock, enter) as [seen]:
        assert seen == Locks(named(lock, "shelf.condition"), ())


def test_a_function_that_was_written_inside_of_with_does_not_hold_the_lock() -> None:
    first, second = threading.Lock(), threading.Lock()
    with first:

        def work() -> None:
            with second:
                pass

    with first, blocked(second, work) as [seen]:
        assert seen == Locks(named(second, "second"), ())
