"""Which lines of the user's own code took the time of a captured epoch.

The books say exactly how long the training thread spent on each account and each of its items.
Samples of its stack divide that among lines. A wait for input is never due to a line of the
training thread, but to whatever ran in the background, for as much of the wait as something ran.
The same goes for steps that are slower because Python in the background holds the interpreter's
lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.attribute.booked_time import CAUSES_OF
from stall_analyzer.captures.capture_format import Account
from stall_analyzer.captures.capture_records import BookItem
from stall_analyzer.captures.stack_frames import Frame, frame_of
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.code_lines import CodeLine, CodeStack
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.sampled_stacks import SampledStacks, SeenStack
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.host.replica_threads import with_replica_threads

# Accounts in which the training thread runs Python, its own or a library's.
OF_THE_THREAD = (
    Account.PYTHON, Account.ITERATOR, Account.CALLBACK, Account.SIDE, Account.SAVE, Account.TRACE,
    Account.RETRACE,
)  # fmt: skip
# Accounts in which it may wait for a batch. Inside a step, samples cannot tell waiting from work.
MAY_WAIT = (Account.STEP, Account.INPUT)
WAITS = (Account.WAIT, Account.INPUT)

Item = tuple[str, str]  # account and name; without a name, the rest of the account

BEHIND: Item = (Account.WAIT, "")


@dataclass(frozen=True)
class _Epoch:
    """The first epoch, according to the books and the samples."""

    spent_ns: Counter[str]  # by account
    items_ns: Counter[Item]
    where: dict[Item, str]
    seen: tuple[SeenStack, ...]
    calls: tuple[BookItem, ...]
    is_eager: bool  # most of its Python is in steps that call no compiled function


def code_stacks(
    capture: Capture | None, window: Window, contention_ps: int = 0
) -> tuple[CodeStack, ...]:
    """Costliest first; empty without a capture that looked. `contention_ps`: how much slower input
    in the background made the steps."""
    start_ns = window.start_unix_ns
    if capture is None or capture.books is None or start_ns is None:
        return ()
    end_ns = start_ns + window.duration_ps // PS_PER_NS
    epoch = _epoch(capture.books, capture.stacks or SampledStacks(), start_ns, end_ns)
    stacks = [*_of_the_thread(epoch), *_of_the_background(epoch, contention_ps // PS_PER_NS)]
    if epoch.is_eager:
        stacks = [replace(s, cause="host.eager") if s.cause == "host.python" else s for s in stacks]
    return tuple(sorted((s for s in stacks if s.ps > 0), key=lambda stack: -stack.ps))


def code_lines(stacks: Sequence[CodeStack], source: Mapping[str, str]) -> tuple[CodeLine, ...]:
    """The innermost lines of the user's own code, costliest first."""
    spent: Counter[CodeLine] = Counter()
    for stack in stacks:
        frame = users_frame(stack.frames)
        if frame is not None:
            spent[_line(frame, stack, source.get(f"{frame.path}:{frame.line}", ""))] += stack.ps
    return tuple(replace(line, ps=ps) for line, ps in spent.most_common())


def _epoch(books: Books, stacks: SampledStacks, start_ns: int, end_ns: int) -> _Epoch:
    def is_inside(begin_ns: int, until_ns: int) -> bool:
        return start_ns <= (begin_ns + until_ns) // 2 < end_ns

    middle = (books.begin_ns + books.end_ns) // 2
    rows = (middle >= start_ns) & (middle < end_ns)
    spent = {account: int(np.sum(ns[rows])) for account, ns in books.spent_ns.items()}
    items: Counter[Item] = Counter()
    where = {}
    for dated in books.items:
        if is_inside(dated.begin_ns, dated.end_ns):
            item = dated.item.account, dated.item.name
            items[item] += dated.item.spent_ns
            where[item] = dated.item.where
    seen = tuple(s for s in stacks.stacks if is_inside(s.begin_ns, s.end_ns))
    calls = tuple(c.item for c in stacks.calls if is_inside(c.begin_ns, c.end_ns))
    python = books.spent(Account.PYTHON)
    eager_ns = int(np.sum(python[rows & books.is_eager]))
    is_eager = 2 * eager_ns > spent.get(Account.PYTHON, 0)
    return _Epoch(Counter(spent), items, where, seen, calls, is_eager)


def _of_the_thread(epoch: _Epoch) -> Iterator[CodeStack]:
    for account in OF_THE_THREAD:
        seen_there = [s for s in epoch.seen if s.seen.account == account]
        mine = [s for s in seen_there if not s.seen.background]
        beside = [s for s in seen_there if s.seen.background]
        named = [item for item in epoch.items_ns if item[0] == account]
        left_ns = epoch.spent_ns[account] - sum(epoch.items_ns[item] for item in named)
        times_ns = {item: epoch.items_ns[item] for item in named} | {(account, ""): left_ns}
        for item, spent_ns in times_ns.items():
            seen = with_replica_threads(
                [s for s in mine if _item_of(s, times_ns) == item],
                [s for s in beside if _item_of(s, times_ns) == item],
            )
            if seen:
                yield from _divided(spent_ns, seen, item)
            else:
                yield from _as_a_whole(spent_ns, epoch, item)


def _item_of(stack: SeenStack, known: Container[Item]) -> Item:
    """An item that the books do not name is part of the rest of its account."""
    item = stack.seen.account, stack.seen.item
    return item if item in known else (stack.seen.account, "")


def _divided(
    spent_ns: int, seen: Sequence[SeenStack], item: Item, background: bool = False
) -> Iterator[CodeStack]:
    """Divided by how long each stack was seen."""
    all_ns = sum(stack.seen.seen_ns for stack in seen)
    seen_ns: Counter[tuple[Frame, ...]] = Counter()
    for stack in seen:
        seen_ns[stack.frames] += stack.seen.seen_ns
    for frames, ns in seen_ns.items():
        yield _stack(frames, spent_ns * ns // max(all_ns, 1), item, background)


def _as_a_whole(spent_ns: int, epoch: _Epoch, item: Item) -> Iterator[CodeStack]:
    """An item too short for the samples, but timed, and with a known place."""
    frame = frame_of(f"{epoch.where.get(item, '')} {item[1]}")
    if frame is not None and frame.is_users:
        yield _stack((frame,), spent_ns, item)


def _of_the_background(epoch: _Epoch, contention_ns: int) -> Iterator[CodeStack]:
    """Functions that no sample shows were still timed, and have a known place."""
    held_up_ns = sum(epoch.spent_ns[account] for account in WAITS) + contention_ns
    behind = [s for s in epoch.seen if s.seen.account in MAY_WAIT and s.seen.background]
    calls = [call for call in epoch.calls if call.account in MAY_WAIT]
    clocked_ns = sum(call.spent_ns for call in calls)
    ran_ns = max(clocked_ns, _seen_to_run_ns(behind, epoch))
    unseen = _unseen(calls, behind)
    part = min(held_up_ns / ran_ns, 1.0) if ran_ns else 0.0
    for frame, spent_ns in unseen.items():
        yield _stack((frame,), round(part * spent_ns), BEHIND, background=True)
    if behind:
        seen_ns = round(part * (ran_ns - unseen.total()))
        yield from _divided(seen_ns, behind, BEHIND, background=True)


def _seen_to_run_ns(behind: Sequence[SeenStack], epoch: _Epoch) -> int:
    """How long something ran while the training thread may have waited, by the samples."""
    whole_ns = sum(epoch.spent_ns[account] for account in {*WAITS, *MAY_WAIT})
    mine = (s.seen for s in epoch.seen if s.seen.account in MAY_WAIT and not s.seen.background)
    looked_ns = sum(seen.seen_ns for seen in mine)
    return sum(s.seen.seen_ns for s in behind) * whole_ns // looked_ns if looked_ns else 0


def _unseen(calls: Sequence[BookItem], behind: Sequence[SeenStack]) -> Counter[Frame]:
    """Functions of the user whose lines no sample shows, and how long they ran."""
    shown = {(f.path, f.name) for stack in behind for f in stack.frames}
    spent: Counter[Frame] = Counter()
    for call in calls:
        frame = frame_of(f"{call.where} {call.name}")
        if frame is not None and frame.is_users and (frame.path, frame.name) not in shown:
            spent[frame] += call.spent_ns
    return spent


def _stack(
    frames: tuple[Frame, ...], spent_ns: int, item: Item, background: bool = False
) -> CodeStack:
    cause = CAUSES_OF[item[0]]
    return CodeStack(bucket_of(cause), cause, frames, spent_ns * PS_PER_NS, item[1], background)


def _line(frame: Frame, stack: CodeStack, source: str) -> CodeLine:
    return CodeLine(
        bucket=stack.bucket,
        cause=stack.cause,
        path=frame.path,
        line=frame.line,
        function=frame.function,
        ps=0,
        source=source,
        name=stack.name,
        background=stack.background,
    )


def users_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost line of the user's own code; None if that is only the call that trains."""
    for n, frame in enumerate(frames):
        if frame.is_users:
            trains = any(f.trains for f in frames[:n])
            return None if trains else frame
    return None
