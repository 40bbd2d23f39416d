"""Which lines of the user's own code the time of a captured epoch went to.

The books say exactly how long the training thread was in each account and each item of it. Samples
of its stack divide that among lines. Of a wait for input no line of the training thread is the
reason, but what ran meanwhile in the background: as much of the wait as something did run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stall_analyzer.attribute.booked_time import CAUSES_OF
from stall_analyzer.captures.capture_format import Account
from stall_analyzer.captures.stack_frames import Frame, frame_of
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.code_lines import CodeLine
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.sampled_stacks import SampledStacks, SeenStack
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_NS

# In which the training thread runs Python, its own or a library's.
OF_THE_THREAD = (
    Account.PYTHON, Account.ITERATOR, Account.CALLBACK, Account.SIDE, Account.SAVE, Account.TRACE,
    Account.RETRACE,
)  # fmt: skip
# In which it may wait for a batch. Inside of a step, samples do not tell the wait from the work.
MAY_WAIT = (Account.STEP, Account.INPUT)
WAITS = (Account.WAIT, Account.INPUT)
# The line that calls one of these calls the whole training: it explains nothing.
TRAINS = frozenset({"fit", "fit_generator", "train_on_batch"})

Item = tuple[str, str]  # account and name; without a name, what the named ones leave


@dataclass(frozen=True)
class _Epoch:
    """The first epoch, as the books and the samples tell it."""

    spent_ns: Counter[str]  # by account
    items_ns: Counter[Item]
    where: dict[Item, str]
    seen: tuple[SeenStack, ...]
    source: SampledStacks


def code_lines(capture: Capture | None, window: Window) -> tuple[CodeLine, ...]:
    """Costliest first. Nothing, where a capture has not looked."""
    start_ns = window.start_unix_ns
    if capture is None or capture.books is None or start_ns is None:
        return ()
    end_ns = start_ns + window.duration_ps // PS_PER_NS
    epoch = _epoch(capture.books, capture.stacks or SampledStacks(), start_ns, end_ns)
    lines = [*_of_the_thread(epoch), *_of_the_background(epoch)]
    return tuple(sorted((line for line in lines if line.ps > 0), key=lambda line: -line.ps))


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
    return _Epoch(Counter(spent), items, where, seen, stacks)


def _of_the_thread(epoch: _Epoch) -> Iterator[CodeLine]:
    for account in OF_THE_THREAD:
        mine = [s for s in epoch.seen if s.seen.account == account and not s.seen.background]
        named = [item for item in epoch.items_ns if item[0] == account]
        left_ns = epoch.spent_ns[account] - sum(epoch.items_ns[item] for item in named)
        times_ns = {item: epoch.items_ns[item] for item in named} | {(account, ""): left_ns}
        for item, spent_ns in times_ns.items():
            seen = [s for s in mine if _item_of(s, times_ns) == item]
            if seen:
                yield from _divided(spent_ns, seen, epoch, item)
            else:
                yield from _as_a_whole(spent_ns, epoch, item)


def _item_of(stack: SeenStack, known: Container[Item]) -> Item:
    """One that has not been told is part of what the others leave."""
    item = stack.seen.account, stack.seen.item
    return item if item in known else (stack.seen.account, "")


def _divided(
    spent_ns: int, seen: Sequence[SeenStack], epoch: _Epoch, item: Item, background: bool = False
) -> Iterator[CodeLine]:
    """By how long each line was seen."""
    all_ns = sum(stack.seen.seen_ns for stack in seen)
    by_line: Counter[Frame] = Counter()
    for stack in seen:
        frame = users_frame(stack.frames)
        if frame is not None:
            by_line[frame] += stack.seen.seen_ns
    for frame, seen_ns in by_line.items():
        ps = spent_ns * seen_ns // max(all_ns, 1) * PS_PER_NS
        yield _line(frame, ps, epoch, item, background)


def _as_a_whole(spent_ns: int, epoch: _Epoch, item: Item) -> Iterator[CodeLine]:
    """Too short to be seen, but it has a clock of its own, and a place."""
    frame = frame_of(f"{epoch.where.get(item, '')} {item[1]}")
    if frame is not None and frame.is_users:
        yield _line(frame, spent_ns * PS_PER_NS, epoch, item)


def _of_the_background(epoch: _Epoch) -> Iterator[CodeLine]:
    waited_ns = sum(epoch.spent_ns[account] for account in WAITS)
    seen = [stack for stack in epoch.seen if stack.seen.account in MAY_WAIT]
    behind = [stack for stack in seen if stack.seen.background]
    looked_ns = sum(stack.seen.seen_ns for stack in seen if not stack.seen.background)
    if not behind or not waited_ns or not looked_ns:
        return
    whole_ns = sum(epoch.spent_ns[account] for account in {*WAITS, *MAY_WAIT})
    ran_ns = sum(stack.seen.seen_ns for stack in behind) * whole_ns // looked_ns
    item = Account.WAIT, ""
    yield from _divided(min(waited_ns, ran_ns), behind, epoch, item, background=True)


def _line(frame: Frame, ps: int, epoch: _Epoch, item: Item, background: bool = False) -> CodeLine:
    cause = CAUSES_OF[item[0]]
    return CodeLine(
        bucket=bucket_of(cause),
        cause=cause,
        path=frame.path,
        line=frame.line,
        function=frame.function,
        ps=ps,
        source=epoch.source.source.get(f"{frame.path}:{frame.line}", ""),
        name=item[1],
        background=background,
    )


def users_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost line of the user's; None where only the call of the training is."""
    for n, frame in enumerate(frames):
        if frame.is_users:
            trains = any(f.is_tensorflow and f.name in TRAINS for f in frames[:n])
            return None if trains else frame
    return None
