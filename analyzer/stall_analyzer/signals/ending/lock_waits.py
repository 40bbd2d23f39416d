"""Who holds the Python lock that a thread waits for, as far as a capture could tell."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.captures.look_records import ThreadStack
from stall_analyzer.signals.ending.python_stacks import stack_of
from stall_analyzer.signals.ending.waits import Wait, WaitKind, wait_of

# Waits that another thread of the process would end if it could.
FOR_THREADS: frozenset[WaitKind] = frozenset(
    {"queue", "full_queue", "future", "event", "thread", "lock"}
)


def lock_wait(thread: ThreadStack, threads: Sequence[ThreadStack]) -> Wait | None:
    """None: it is not known to wait for a Python lock."""
    if thread.waits_for is None:
        return None
    lock = f"the lock {thread.waits_for.name}"
    holder = _holder(thread, threads)
    if holder is None:
        return Wait("lock", f"is waiting for {lock}")
    if holder is thread:
        return Wait("own_lock", f"is waiting for {lock}, which it holds itself,")
    chain = _chain(thread, threads)
    if _holder(chain[-1], threads) is thread:
        links = _links(chain, threads)
        return Wait("deadlock", f"is in a deadlock: it is waiting for {lock}, {links}")
    does = lock_wait(holder, threads) or wait_of(stack_of(holder))
    what = f", where it {does.words.rstrip(',')}" if does is not None else ""
    return Wait("lock", f"is waiting for {lock}, which {_name(holder)} holds{_at(holder)}{what},")


def beside_a_deadlock(wait: Wait | None, threads: Sequence[ThreadStack]) -> Wait | None:
    """A thread that waits for others, some of which wait for each other."""
    if wait is None or wait.kind not in FOR_THREADS:
        return wait
    for thread in threads:
        found = lock_wait(thread, threads)
        if found is not None and found.kind == "deadlock":
            other = f"{_name(thread)}{_at(thread)} {found.words}"
            return Wait("deadlock", f"{wait.words.rstrip(',')}, while {other}")
    return wait


def _holder(thread: ThreadStack, threads: Sequence[ThreadStack]) -> ThreadStack | None:
    lock = thread.waits_for
    if lock is None:
        return None
    return next((t for t in threads if any(held.id == lock.id for held in t.holds)), None)


def _chain(thread: ThreadStack, threads: Sequence[ThreadStack]) -> list[ThreadStack]:
    """The thread, the one that holds what it waits for, and so on; each of them once."""
    chain = [thread]
    while (holder := _holder(chain[-1], threads)) is not None and holder not in chain:
        chain.append(holder)
    return chain


def _links(chain: Sequence[ThreadStack], threads: Sequence[ThreadStack]) -> str:
    """`which the thread b holds; the thread b at x.py:3 is waiting for the lock p, which …`"""
    links = [f"which {_name(chain[1])} holds"]
    for thread in chain[1:]:
        holder = _holder(thread, threads)
        assert thread.waits_for is not None and holder is not None, "a deadlock is a circle"
        waits = f"{_name(thread)}{_at(thread)} is waiting for the lock {thread.waits_for.name}"
        links.append(f"{waits}, which {_name(holder)} holds")
    return "; ".join(links)


def _name(thread: ThreadStack) -> str:
    if thread.main:
        return "the main thread"
    return f"the thread {thread.name}" if thread.name else "a TensorFlow thread"


def _at(thread: ThreadStack) -> str:
    place = stack_of(thread).users
    return f" at {place.place}" if place is not None else ""
