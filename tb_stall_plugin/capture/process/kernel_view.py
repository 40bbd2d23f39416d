"""What the kernel says about the threads of a process (by default, of this one): the system call
that each waits in, what it waits for, and how long it ran.

All of it is read from /proc, which never waits for a disk. Each file may be missing or forbidden.
"""

from __future__ import annotations

import os
import platform
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROCESS = Path("/proc/self")
LONGEST_PATH = 1024
MOST_SOCKETS = 20_000  # lines in a table of the kernel; a longer table is not searched
STANDARD_INPUT = "standard input"
FOR_A_PARTNER = "wait_for_partner"  # the kernel's function: nobody opened the pipe's other end

# Calls in which threads wait, by their numbers in the kernel. Others are shown as a number.
SYSCALLS = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 9: "mmap", 11: "munmap", 16: "ioctl",
        17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select", 28: "madvise",
        34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom",
        46: "sendmsg", 47: "recvmsg", 61: "wait4", 65: "semop", 72: "fcntl", 73: "flock",
        74: "fsync", 75: "fdatasync", 128: "rt_sigtimedwait", 202: "futex", 220: "semtimedop",
        230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat", 270: "pselect6",
        271: "ppoll", 281: "epoll_pwait", 288: "accept4", 441: "epoll_pwait2",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read",
        64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 72: "pselect6",
        73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep",
        115: "clock_nanosleep", 137: "rt_sigtimedwait", 192: "semtimedop", 193: "semop",
        202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg",
        212: "recvmsg", 215: "munmap", 222: "mmap", 233: "madvise", 242: "accept4",
        260: "wait4", 441: "epoll_pwait2",
    },
}  # fmt: skip
# Their first argument is an open file.
OF_FILES = frozenset(
    {"read", "write", "pread64", "pwrite64", "readv", "writev", "recvfrom", "recvmsg", "sendto",
     "sendmsg", "accept", "accept4", "connect", "flock", "fcntl", "ioctl", "fsync", "fdatasync"}
)  # fmt: skip


@dataclass(frozen=True)
class Wait:
    """A system call that a thread is in."""

    call: str = ""  # or the kernel's function; empty if neither is known
    on: str = ""  # what it waits for, in words: "the socket to 10.0.0.7:443", "/data/lock"


def wait_of(task: str, process: Path = PROCESS) -> Wait:
    """The system call that a thread waits in."""
    call, arguments = _call(process / "task" / task)
    with suppress(OSError, ValueError, LookupError, struct.error):
        return Wait(call, _about(call, task, arguments, process))
    return Wait(call)


def call_of(folder: Path) -> str:
    """The system call of a thread or process in /proc, or else the kernel's function."""
    return _call(folder)[0]


def _call(folder: Path) -> tuple[str, list[int]]:
    words = _text(folder / "syscall").split()
    if not words or not words[0].isdecimal():
        return _kernel_function(folder), []
    number = int(words[0])
    call = SYSCALLS.get(platform.machine(), {}).get(number, f"syscall {number}")
    return call, [int(word, 16) for word in words[1:7]]


def run_time(task: str, process: Path = PROCESS) -> tuple[int, int] | None:
    """Nanoseconds on a core, and how often it got one. A thread that stays in a call gets none."""
    words = _text(process / "task" / task / "schedstat").split()
    return (int(words[0]), int(words[2])) if len(words) == 3 else None


def _about(call: str, task: str, arguments: list[int], process: Path) -> str:
    if call in OF_FILES:
        return _open_file(arguments[0], process)
    if call in ("poll", "ppoll") and arguments[1] == 1:
        return _open_file(struct.unpack("i", _memory(arguments[0], 4, process))[0], process)
    if call in ("open", "openat"):
        path = _memory(arguments[call == "openat"], LONGEST_PATH, process).partition(b"\0")[0]
        waits_in = _kernel_function(process / "task" / task)
        pipe = "the named pipe " if waits_in == FOR_A_PARTNER else ""
        return pipe + os.fsdecode(path)
    child = arguments[0] if call == "wait4" else arguments[1] if call == "waitid" else 0
    return f"process {child}" if 0 < child < 1 << 31 else ""


def _open_file(number: int, process: Path) -> str:
    number &= 0xFFFFFFFF  # only these bits of the register hold the argument
    if number == 0:
        return STANDARD_INPUT
    target = str((process / "fd" / str(number)).readlink())
    kind, _, inode = target.partition(":[")
    if kind == "socket":
        peer = _peer(inode.rstrip("]"), process)
        return f"the socket to {peer}" if peer else "a socket"
    return "a pipe" if kind == "pipe" else target if target.startswith("/") else ""


def _peer(inode: str, process: Path) -> str:
    """The peer of a TCP socket, such as `10.0.0.7:443`; empty if it has none."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with (process / "net" / table).open() as lines:
            for _, line in zip(range(MOST_SOCKETS), lines, strict=False):
                fields = line.split()
                if len(fields) > 9 and fields[9] == inode:
                    return _address(fields[2], family)
    return ""


def _address(text: str, family: int) -> str:
    """Parses the kernel's 32-bit words, each in the byte order of the machine."""
    host, _, port = text.partition(":")
    words = struct.pack(f"={len(host) // 8}I", *_words(host))
    name = socket.inet_ntop(family, words)
    return f"{name}:{int(port, 16)}" if int(port, 16) else ""


def _words(digits: str) -> list[int]:
    return [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]


def _memory(address: int, size: int, process: Path) -> bytes:
    """Unlike a pointer, this raises if there is no memory at that address."""
    with (process / "mem").open("rb", buffering=0) as memory:
        return os.pread(memory.fileno(), size, address)


def _kernel_function(folder: Path) -> str:
    place = _text(folder / "wchan").strip()
    return "" if place == "0" else place


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # containers may forbid it, or the thread has ended
        return ""
