"""Samples of stacks, folded: each frame and each stack is written once, and then only counted."""

from __future__ import annotations

import linecache
import time
from collections.abc import Iterable

from stall_analyzer.captures.capture_records import BookItem, StackSamples, StacksRecord
from stall_analyzer.captures.stack_frames import frame_of
from tb_stall_plugin.capture.process.thread_stacks import CUT

MOST_STACKS = 300  # for each account and kind of thread; after that, only frames of the user
MOST_LINES = 300  # stacks of the user's frames alone; after that, only the time is kept
MOST_SOURCE_LINES = 1000
LONGEST_SOURCE = 200

Key = tuple[str, str, bool, tuple[str, ...]]  # account, item, whether in the background, frames


class FoldedStacks:
    """One thread fills it, and another takes from it."""

    def __init__(self, with_source: bool) -> None:
        self._with_source = with_source
        self._seen: dict[Key, list[int]] = {}  # count, nanoseconds
        self._since_ns = time.time_ns()
        self._whole: dict[tuple[str, bool], set[tuple[str, ...]]] = {}
        self._short: dict[tuple[str, bool], set[tuple[str, ...]]] = {}
        # The numbers of what has already been written.
        self._frames: dict[str, int] = {}
        self._stacks: dict[tuple[str, ...], int] = {}
        self._sources: set[str] = set()

    def begin_anew(self) -> None:
        self._since_ns = time.time_ns()

    def add(
        self, account: str, item: str, background: bool, frames: tuple[str, ...], seen_ns: int
    ) -> None:
        kept = self._kept((account, background), frames)
        entry = self._seen.setdefault((account, item, background, kept), [0, 0])
        entry[0] += 1
        entry[1] += seen_ns

    def _kept(self, table: tuple[str, bool], frames: tuple[str, ...]) -> tuple[str, ...]:
        """As much of the stack as there is still room for."""
        if _has_room(self._whole.setdefault(table, set()), frames, MOST_STACKS):
            return frames
        users = _users_alone(frames)
        return users if _has_room(self._short.setdefault(table, set()), users, MOST_LINES) else ()

    def taken(self, calls: tuple[BookItem, ...] = ()) -> StacksRecord | None:
        """What was seen since the last time."""
        seen, self._seen = self._seen, {}
        since_ns, self._since_ns = self._since_ns, time.time_ns()
        if not seen and not calls:
            return None
        frames: dict[str, str] = {}
        stacks: dict[str, tuple[int, ...]] = {}
        samples = []
        for (account, item, background, lines), (count, seen_ns) in seen.items():
            stack = self._stacks.get(lines)
            if stack is None:
                stack = self._stacks[lines] = len(self._stacks)
                stacks[str(stack)] = tuple(self._number(line, frames) for line in lines)
            samples.append(StackSamples(account, item, background, stack, count, seen_ns))
        places = (f"{call.where} {call.name}" for call in calls)
        return StacksRecord(
            began_ns=since_ns,
            frames=frames,
            stacks=stacks,
            samples=tuple(samples),
            calls=calls,
            source=self._source([*frames.values(), *places]) if self._with_source else {},
        )

    def _number(self, line: str, new: dict[str, str]) -> int:
        number = self._frames.get(line)
        if number is None:
            number = self._frames[line] = len(self._frames)
            new[str(number)] = line
        return number

    def _source(self, lines: Iterable[str]) -> dict[str, str]:
        """The text of the user's own lines."""
        found = {}
        for frame in map(frame_of, lines):
            if frame is not None and frame.is_users and len(self._sources) < MOST_SOURCE_LINES:
                place = f"{frame.path}:{frame.line}"
                text = linecache.getline(frame.path, frame.line).strip()
                if text and place not in self._sources:
                    self._sources.add(place)
                    found[place] = text[:LONGEST_SOURCE]
        return found


def _has_room(table: set[tuple[str, ...]], frames: tuple[str, ...], most: int) -> bool:
    if frames not in table:
        if len(table) >= most:
            return False
        table.add(frames)
    return True


def _users_alone(frames: tuple[str, ...]) -> tuple[str, ...]:
    read = ((line, frame_of(line)) for line in frames)
    kept = (line for line, frame in read if frame is not None and (frame.is_users or frame.trains))
    return (CUT, *kept)
