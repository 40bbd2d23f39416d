"""Which lines of Python run: samples the stacks of all threads about thirty times a second.

A sample of the training thread counts for the account that its books are in. Other threads work for
it in the background: generators, functions given to map, workers of a PyDataset. A sample weighs as
much as the time since the last one, because code that lets no other Python run delays samples.
"""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from operator import attrgetter
from pathlib import PurePath
from types import CodeType, FrameType
from typing import NamedTuple

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.captures.capture_records import BookItem, StacksRecord
from stall_analyzer.captures.stack_frames import OURS, Frame
from tb_stall_plugin.capture.process.current_frames import with_current_stacks
from tb_stall_plugin.capture.process.folded_stacks import FoldedStacks
from tb_stall_plugin.capture.process.generated_code import GENERATED, users_line
from tb_stall_plugin.capture.process.thread_stacks import (
    HIDDEN,
    OWN_THREADS,
    cut,
    line_of,
)

MOST_COST = 0.003  # of a core
PAUSES_S = (0.02, 0.25)  # between two looks: the shortest, and the longest if looks are expensive
JITTER = 0.3  # without it, steps as regular as the looks would always be seen at the same line
FIRST_COST_S = 0.0002  # assumed before the first look: the first looks find only new stacks
COSTS_MEAN = 8  # how many looks the mean of their cost is taken over
RECORD_EACH_S = 2.0  # a process that is killed loses this much,
RECORD_SHARE = 0.01  # or this share of the time so far: the file must not keep growing so fast
MOST_KNOWN = 5000  # stacks in memory, by their code
# Python's own modules in which threads wait for each other.
WAITING_MODULES = frozenset(
    {"threading", "queue", "selectors", "connection", "synchronize", "_base", "pool", "queues"}
)


_code, _at = attrgetter("f_code"), attrgetter("f_lasti")


class Doing(NamedTuple):
    """What the training thread is doing."""

    thread: int  # 0 if there is none
    account: str
    item: str


class Stack(NamedTuple):
    frames: tuple[str, ...]  # "path:line function", innermost first
    is_users: bool  # it contains the user's code
    is_called: bool  # TensorFlow, Keras or another library runs it
    waits: bool  # for another thread


class StackSampler:
    """One for all fits of a session. Each fit has a thread for as long as its first epoch lasts."""

    def __init__(
        self,
        doing: Callable[[], Doing],
        record: Callable[[StacksRecord], None],
        failed: Callable[[str], None],
        with_source: bool = True,
        calls: Callable[[], tuple[BookItem, ...]] = tuple,
    ) -> None:
        self._doing = doing
        self._record = record
        self._failed = failed
        self._calls = calls  # returns the functions that ran in the background since its last call
        self._folded = FoldedStacks(with_source)
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        # The code is kept alive, because other code could get its address.
        self._known: dict[tuple[int, ...], tuple[Stack, list[CodeType]]] = {}
        self._idents: set[int] = set()
        self._own: set[int] = set()
        self._random = random.Random(0)  # leaves the program's own random numbers alone
        self._began_s = self._due_s = 0.0
        self._cost_s = FIRST_COST_S  # approximate processor time of a look

    def begin(self) -> None:
        self._began_s = self._began_s or time.monotonic()
        self._folded.begin_anew()
        self._thread = threading.Thread(target=self._run, name=f"{OWN_THREADS}lines", daemon=True)
        self._thread.start()

    def end(self) -> None:
        if self._thread is not None:
            self._thread = None
            self.write()

    def write(self) -> None:
        """Records what was seen since the last time."""
        with self._writing:
            record = self._folded.taken(self._calls())
            if record is not None:
                self._record(record)

    def write_if_due(self) -> None:
        now_s = time.monotonic()
        if self._thread is not None and now_s >= self._due_s:
            passed_s = now_s - self._began_s
            self._due_s = now_s + max(RECORD_EACH_S, RECORD_SHARE * passed_s)
            self.write()

    # ------------------------------------------------------------ looking

    def _run(self) -> None:
        me = threading.current_thread()
        last_ns = time.perf_counter_ns()
        try:
            while True:
                time.sleep(self._pause_s())
                if me is not self._thread:
                    return
                now_ns = time.perf_counter_ns()
                before_s = time.thread_time()
                self.look(now_ns - last_ns)
                last_ns = now_ns
                self._costs(time.thread_time() - before_s)
        except Exception as error:
            self._thread = None
            self._failed(f"{type(error).__name__}: {error}")

    def _costs(self, spent_s: float) -> None:
        self._cost_s += (spent_s - self._cost_s) / COSTS_MEAN

    def _pause_s(self) -> float:
        shortest_s, longest_s = PAUSES_S
        pause_s = min(max(self._cost_s / MOST_COST, shortest_s), longest_s)
        return pause_s * self._random.uniform(1 - JITTER, 1 + JITTER)

    def look(self, passed_ns: int) -> None:
        """Looks at all threads, `passed_ns` after the last look."""
        doing = self._doing()
        if not doing.thread or doing.account == Account.CAPTURE:
            return
        stack, others = with_current_stacks(functools.partial(self._seen, doing.thread))
        if stack is None:
            return
        self._folded.add(doing.account, doing.item, False, stack.frames, passed_ns)
        chosen = _who_runs(others, stack.waits)
        for other in chosen:
            part_ns = passed_ns // len(chosen)
            self._folded.add(doing.account, doing.item, True, other.frames, part_ns)

    def _seen(
        self, thread: int, stacks: dict[int, list[FrameType]]
    ) -> tuple[Stack | None, list[Stack]]:
        """The stack of this thread, and those of the others."""
        mine = stacks.pop(thread, None)
        return (None, []) if mine is None else (self._stack(mine), [*self._others(stacks)])

    def _others(self, stacks: Mapping[int, list[FrameType]]) -> Iterator[Stack]:
        if stacks.keys() != self._idents:
            self._idents = set(stacks)
            known = threading.enumerate()
            self._own = {t.ident or 0 for t in known if t.name.startswith(OWN_THREADS)}
        for ident, frames in stacks.items():
            if ident not in self._own:
                stack = self._stack(frames)
                if stack.is_users:
                    yield stack

    def _stack(self, frames: list[FrameType]) -> Stack:
        """Looks up lines only for what has not been seen yet, because that costs most."""
        codes = [*map(_code, frames)]
        key = (*map(id, codes), *map(_at, frames))  # hashing code itself would take long
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = _stack_of(frames), codes
        return known[0]


def _who_runs(others: list[Stack], training_waits: bool) -> list[Stack]:
    """The background threads that count: those that TensorFlow has called. If these wait, or the
    training thread does, the user's own threads count. A thread that nobody waits for does not."""
    called = [stack for stack in others if stack.is_called]
    running = [stack for stack in called if not stack.waits]
    if running:
        return running
    helpers = [stack for stack in others if not stack.is_called and not stack.waits]
    return (helpers if called or training_waits else []) or called


def _stack_of(frames: list[FrameType]) -> Stack:
    lines: list[str] = []
    whose: list[Whose] = []
    for frame in frames:
        code = frame.f_code
        owner = _whose(code.co_filename)
        if code in HIDDEN:
            lines.clear()
            whose.clear()
        elif owner is not Whose.OURS:
            line = _line(frame)
            is_made = GENERATED in code.co_filename  # it belongs to whoever wrote the line
            lines.append(line)
            whose.append(_whose(line.rpartition(":")[0]) if is_made else owner)
    return Stack(
        frames=cut(lines),
        is_users=Whose.USERS in whose,
        is_called=Whose.LIBRARYS in whose,
        waits=whose[:1] == [Whose.WAITS],
    )


class Whose(Enum):
    OURS = auto()
    USERS = auto()
    LIBRARYS = auto()
    PYTHONS = auto()
    WAITS = auto()  # Python's own, where threads wait for each other


@functools.lru_cache(MOST_KNOWN)
def _whose(path: str) -> Whose:
    frame = Frame(path, 0, "")
    if frame.is_of(OURS):
        return Whose.OURS
    if frame.is_standard:
        return Whose.WAITS if PurePath(path).stem in WAITING_MODULES else Whose.PYTHONS
    return Whose.USERS if frame.is_users and GENERATED not in path else Whose.LIBRARYS


def _line(frame: FrameType) -> str:
    code = frame.f_code
    if GENERATED in code.co_filename:
        return users_line(code, frame.f_lineno) or line_of(code, frame.f_lineno)
    return _line_at(code, frame.f_lasti, frame)


_lines: dict[tuple[CodeType, int], str] = {}


def _line_at(code: CodeType, at: int, frame: FrameType) -> str:
    """Remembers lines, because finding the number of a line takes longer than all the rest."""
    line = _lines.get((code, at))
    if line is None:
        if len(_lines) >= MOST_KNOWN:
            _lines.clear()
        line = _lines[code, at] = line_of(code, frame.f_lineno)
    return line
