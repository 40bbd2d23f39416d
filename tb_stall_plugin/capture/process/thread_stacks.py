"""What the threads of this process are doing: their Python stacks, and what the kernel says."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from stall_analyzer.captures.capture_records import NativeThreads, ThreadStack

OWN_THREADS = "stall-"  # names of the capture's threads begin so; they are of no interest
MOST_FRAMES = 40
OUTERMOST_FRAMES = 10  # of those: they tell whose call it was, the innermost where it is
MOST_THREADS = 100  # in different places
CUT = "…"
HIDDEN: set[CodeType] = set()  # functions that interrupt a thread: what they call is not its own
TASKS = Path("/proc/self/task")

# Calls in which threads wait, by the kernel's number of them. Others are shown as a number.
SYSCALLS = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 9: "mmap", 11: "munmap", 16: "ioctl", 17: "pread64",
        18: "pwrite64", 23: "select", 28: "madvise", 34: "pause", 35: "nanosleep", 42: "connect",
        43: "accept", 45: "recvfrom", 47: "recvmsg", 61: "wait4", 74: "fsync", 75: "fdatasync",
        128: "rt_sigtimedwait", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait",
        247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
        288: "accept4", 441: "epoll_pwait2",
    },
    "aarch64": {
        22: "epoll_pwait", 29: "ioctl", 56: "openat", 63: "read", 64: "write", 67: "pread64",
        68: "pwrite64", 72: "pselect6", 73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid",
        98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 137: "rt_sigtimedwait",
        202: "accept", 203: "connect", 207: "recvfrom", 212: "recvmsg", 215: "munmap",
        222: "mmap", 233: "madvise", 242: "accept4", 260: "wait4", 441: "epoll_pwait2",
    },
}  # fmt: skip


def python_threads() -> tuple[ThreadStack, ...]:
    """Threads in the same place are one entry; the main thread comes first."""
    known = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    found: dict[tuple[bool, tuple[str, ...]], ThreadStack] = {}
    for ident, frame in sys._current_frames().items():
        # A thread that TensorFlow started, for a py_function say, is not among the known ones.
        thread = known.get(ident)
        name = "" if thread is None else thread.name
        if name.startswith(OWN_THREADS):
            continue
        frames = frames_of(frame)
        wait = "" if thread is None else _wait_of(str(thread.native_id))
        place = ident == main, frames
        entry = found.setdefault(place, ThreadStack(name, ident == main, 0, wait, frames))
        found[place] = replace(entry, count=entry.count + 1)
    return tuple(sorted(found.values(), key=lambda entry: not entry.main)[:MOST_THREADS])


def frames_of(frame: FrameType | None) -> tuple[str, ...]:
    """Of a running thread, innermost first."""
    lines: list[str] = []
    while frame is not None:
        if frame.f_code in HIDDEN:
            lines.clear()
        else:
            lines.append(line_of(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return cut(lines)


def frames_of_traceback(traceback: TracebackType | None) -> tuple[str, ...]:
    """Where an exception came from, innermost first."""
    lines = []
    while traceback is not None:
        lines.append(line_of(traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return cut(lines[::-1])


def line_of(code: CodeType, number: int) -> str:
    function = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and newer have it
    return f"{code.co_filename}:{number} {function}"


def cut(lines: list[str]) -> tuple[str, ...]:
    if len(lines) <= MOST_FRAMES:
        return tuple(lines)
    return (*lines[: MOST_FRAMES - OUTERMOST_FRAMES], CUT, *lines[-OUTERMOST_FRAMES:])


def native_threads() -> tuple[NativeThreads, ...]:
    """Threads by name, kernel state and call they wait in; nothing where there is no /proc."""
    own = {str(t.native_id) for t in threading.enumerate() if t.name.startswith(OWN_THREADS)}
    try:
        tasks = set(os.listdir(TASKS)) - own  # noqa: PTH208 (names are all that is wanted)
    except OSError:
        return ()
    counts = Counter(state for state in map(_state_of, tasks) if state is not None)
    return tuple(NativeThreads(*state, count) for state, count in counts.most_common(MOST_THREADS))


def _state_of(task: str) -> tuple[str, str, str] | None:
    try:
        # "12 (name) S …": the name may hold brackets and spaces.
        head, _, rest = (TASKS / task / "stat").read_text(errors="replace").rpartition(")")
    except OSError:  # it has just ended
        return None
    name, state = head.partition("(")[2], rest.split()[0]
    return name, state, "" if state == "R" else _wait_of(task)


def _wait_of(task: str) -> str:
    """The system call, or else the kernel function, that a thread sleeps in."""
    number = _word(task, "syscall")
    if number.isdecimal():
        known = SYSCALLS.get(platform.machine(), {})
        return known.get(int(number), f"syscall {number}")
    place = _word(task, "wchan")
    return "" if place == "0" else place


def _word(task: str, file: str) -> str:
    try:
        return (TASKS / task / file).read_text().partition(" ")[0].strip()
    except OSError:  # containers may forbid it
        return ""
