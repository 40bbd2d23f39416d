"""Stacks of a process in which no Python could run, because native code held the interpreter lock.

Nothing can be recorded then, not even by the watchdog. But the C half of Python's faulthandler
writes stacks without the lock, as text, into a plain file next to the event file:

    JSON of `STACKS_HEADER_BYTES` bytes, written a second before | faulthandler's text, or nothing

The header is a look at the process and a `StacksTimer`, in one object.
"""

from __future__ import annotations

import json

from stall_analyzer.captures.capture_format import STACKS_HEADER_BYTES, StopReason
from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import DumpRecord, Look, ThreadStack
from stall_analyzer.captures.record_json import from_json
from stall_analyzer.files import files
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass

MOST_BYTES = 1 << 20  # a hundred threads of a hundred frames
SUFFIX = ".stall"
_EVENT_FILE = pattern(r"events\.out\.tfevents\.(?P<writer>.+)\.\d+\.stall$")
_THREAD = pattern(r"(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = pattern(r'  File "(.*)", line (\d+) in (.*)')


@dataclass(frozen=True)
class StacksTimer:
    """When faulthandler writes, and whose threads it names."""

    due_s: float  # after the look
    main: int  # threads by their idents
    ours: tuple[int, ...]


def stacks_file_of(event_file: str) -> str | None:
    """The path of the file that belongs to an event file of a capture."""
    if not event_file.endswith(SUFFIX):
        return None
    folder, name = files.split(event_file)
    match = _EVENT_FILE.match(name)
    return files.join(folder, f"stall_stacks.{match['writer']}.txt") if match else None


def read_dump(event_file: str) -> DumpRecord | None:
    """The dump that the process of an event file could not record itself, if there is one. Raises
    UnreadableFile."""
    path = stacks_file_of(event_file)
    if path is None or files.kind(path) != "file":
        return None
    return parse(files.read_head(path, MOST_BYTES))


def parse(data: bytes) -> DumpRecord | None:
    """None if faulthandler wrote nothing."""
    head, text = data[:STACKS_HEADER_BYTES], data[STACKS_HEADER_BYTES:].decode("utf-8", "replace")
    try:
        known = json.loads(head)
        look, timer = from_json(Look, known), from_json(StacksTimer, known)
        if look is None or not look.ns or timer is None:
            return None
        threads = _threads(text, timer)
        ns, idle_s = look.ns + round(timer.due_s * NS_PER_S), look.idle_s + timer.due_s
    except (ValueError, OverflowError, RecursionError):
        return None
    then = {**vars(look), "ns": ns, "idle_s": idle_s, "threads": threads}
    held = DumpRecord(**then, reason=StopReason.NO_STEP, interpreter_held=True)
    return held if threads else None


def _threads(text: str, timer: StacksTimer) -> tuple[ThreadStack, ...]:
    found: dict[int, list[str]] = {}
    frames: list[str] = []
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            frames = found.setdefault(int(thread[1], 16), [])
        elif frame := _FRAME.match(line):
            frames.append(f"{frame[1]}:{frame[2]} {frame[3]}")
    threads = [
        ThreadStack(
            name="MainThread" if ident == timer.main else "",
            main=ident == timer.main,
            frames=tuple(stack),
        )
        for ident, stack in found.items()
        if stack and ident not in timer.ours
    ]
    return tuple(sorted(threads, key=lambda entry: not entry.main))
