"""Stacks of a process in which no Python could run, because native code held the interpreter lock.

Nothing can be recorded then, by the watchdog or anybody else. But the C half of Python's
faulthandler writes stacks without the lock, as text, into a plain file beside the event file:

    JSON of `STACKS_HEADER_BYTES` bytes, written a second before | faulthandler's text, or nothing

The header says what the watchdog knew, when the text was due, and which threads are whose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from stall_analyzer.captures.capture_format import STACKS_HEADER_BYTES, Kind, Reason
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.files import files

MOST_BYTES = 1 << 20  # a hundred threads of a hundred frames
_EVENT_FILE = re.compile(r"events\.out\.tfevents\.(?P<writer>.+)\.\d+\.stall$")
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


def stacks_file_of(event_file: str) -> str | None:
    """The path of the file that belongs to an event file of a capture."""
    folder, name = files.split(event_file)
    match = _EVENT_FILE.match(name)
    return files.join(folder, f"stall_stacks.{match['writer']}.txt") if match else None


def read_dump(event_file: str) -> dict[str, object] | None:
    """The dump that the process of an event file could not record itself, if there is one."""
    path = stacks_file_of(event_file)
    try:
        if path is None or files.kind(path) != "file":
            return None
        with files.open_binary(path) as stream:
            dump = parse(stream.read(MOST_BYTES))
        return None if dump is None else {"kind": Kind.DUMP, **dump}
    except (UnreadableFile, OSError):
        return None


def parse(data: bytes) -> dict[str, object] | None:
    """The fields of a dump. None where faulthandler wrote nothing."""
    head, text = data[:STACKS_HEADER_BYTES], data[STACKS_HEADER_BYTES:].decode("utf-8", "replace")
    try:
        known: dict[str, Any] = json.loads(head)
        threads = _threads(text, known)
        if not threads:
            return None
        return {
            "ns": known["ns"] + round(known["due_s"] * 1e9),
            "reason": Reason.NO_STEP,
            "idle_s": known["idle_s"] + known["due_s"],
            **{name: known[name] for name in ("step", "phase", "limit_s", "cpu_s")},
            "threads": threads,
            "native": [],
            "memory": {},
            "interpreter_held": True,
        }
    except (ValueError, TypeError, LookupError):
        return None


def _threads(text: str, known: Mapping[str, Any]) -> list[dict[str, object]]:
    found: dict[int, list[str]] = {}
    frames: list[str] = []
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            frames = found.setdefault(int(thread[1], 16), [])
        elif frame := _FRAME.match(line):
            frames.append(f"{frame[1]}:{frame[2]} {frame[3]}")
    main = known["main"]
    threads = [
        {"name": "MainThread" if ident == main else "", "main": ident == main, "count": 1,
         "frames": stack}
        for ident, stack in found.items()
        if stack and ident not in known["ours"]
    ]  # fmt: skip
    return sorted(threads, key=lambda entry: not entry["main"])
