"""What a thread waits in: by the frames of Python's library or, in C code, by the system call.

What can be done about a wait depends on its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from stall_analyzer.captures.look_records import ChildProcess
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.ending.python_stacks import Stack, module_of

WaitKind: TypeAlias = Literal[
    "queue", "full_queue", "future", "pool", "replaced", "lock", "own_lock", "deadlock", "event",
    "thread", "process", "connection", "socket", "file_lock", "open", "pipe", "user", "batch",
    "peers", "runtime", "polling", "exit", "service", "endless_data", "dropped", "filling",
    "graph_loop", "graph_wait", "tracing", "xla", "other",
]  # fmt: skip

# Waits for something other than a thread of this process: whatever those compute, it does not end
# such a wait.
FROM_OUTSIDE: frozenset[WaitKind] = frozenset({"socket", "file_lock", "open", "user"})
STANDARD_INPUT = "standard input"
TERMINALS = (STANDARD_INPUT, "/dev/pts/", "/dev/tty", "/dev/console")
A_PIPE = "a pipe"
A_NAMED_PIPE = "the named pipe "

# By module of Python's library; the first one that a frame belongs to decides.
MODULES: Sequence[tuple[str, WaitKind]] = (
    ("pdb", "user"), ("bdb", "user"), ("multiprocessing.pool", "pool"),
    ("concurrent.futures", "future"), ("multiprocessing.queues", "queue"), ("queue", "queue"),
    ("subprocess", "process"), ("multiprocessing.process", "process"),
    ("multiprocessing.popen", "process"), ("multiprocessing.synchronize", "lock"),
    ("multiprocessing.connection", "connection"), ("socket", "socket"), ("ssl", "socket"),
    ("http", "socket"), ("urllib", "socket"), ("ftplib", "socket"), ("smtplib", "socket"),
    ("asyncio", "other"), ("selectors", "other"),
)  # fmt: skip
# By function of `threading`.
FUNCTIONS: dict[str, WaitKind] = {
    "join": "thread", "_wait_for_tstate_lock": "thread", "_shutdown": "exit", "wait": "event",
    "wait_for": "event", "acquire": "lock", "__enter__": "lock",
}  # fmt: skip

ANSWER = "is waiting for an answer from outside"
FOR_A_LOCK = "is waiting for a lock, or for another thread,"
CALLS: dict[str, tuple[WaitKind, str]] = {
    "futex": ("lock", FOR_A_LOCK),
    **dict.fromkeys(("semop", "semtimedop"), ("lock", "is waiting for a semaphore")),
    **dict.fromkeys(("wait4", "waitid"), ("process", "is waiting for another process")),
    **dict.fromkeys(("flock", "fcntl"), ("file_lock", "is waiting for a file lock")),
    **dict.fromkeys(
        ("recvfrom", "recvmsg", "poll", "ppoll", "select", "pselect6", "epoll_wait",
         "epoll_pwait", "epoll_pwait2", "accept", "accept4"),
        ("socket", ANSWER),
    ),
    "connect": ("socket", "is waiting for a connection"),
    **dict.fromkeys(("pause", "rt_sigtimedwait"), ("other", "is waiting for a signal")),
    **dict.fromkeys(("sendto", "sendmsg"), ("socket", "is waiting until it can send")),
}  # fmt: skip
# Calls that wait for one file. Threads of gRPC and of servers are always in one of the others.
OF_ONE_FILE = frozenset(
    {"open", "openat", "flock", "fcntl", "read", "readv", "write", "writev", "recvfrom", "recvmsg",
     "connect"}
)  # fmt: skip
READS, WRITES = ("read", "readv"), ("write", "writev")


@dataclass(frozen=True)
class Wait:
    kind: WaitKind
    words: str  # "is waiting in queue.Queue.get()"


def wait_of(stack: Stack, children: Sequence[ChildProcess] = ()) -> Wait | None:
    """None where nothing says that it waits: it may sleep, compute or read from a disk."""
    if stack.on.startswith(TERMINALS) and stack.system_call in (*READS, "poll", "select"):
        return Wait("user", "is waiting for the user to type something,")
    on = _named(stack.on, children)
    if stack.wait:
        kind = _kind(stack.library_calls)
        if kind == "user":
            return Wait(kind, "is waiting for the user, in a debugger,")
        if kind == "pool":
            words = f"is waiting in {stack.wait} for a worker process that does not answer,"
            return Wait(kind, words)
        return Wait(kind, f"is waiting in {stack.wait}{f' ({on})' if on and on != A_PIPE else ''}")
    return _by_call(stack.system_call, on)


def wait_in_call(call: str, on: str) -> Wait | None:
    """The wait of native code for one file or connection; None where it may wait for anything."""
    return _by_call(call, on) if call in OF_ONE_FILE and on else None


def _kind(calls: Sequence[Frame]) -> WaitKind:
    modules = [module_of(frame) for frame in calls]
    for name, kind in MODULES:
        if any(module == name or module.startswith((f"{name}.", f"{name}_")) for module in modules):
            puts = any(f.name == "put" for f, m in zip(calls, modules, strict=True) if m == name)
            return "full_queue" if kind == "queue" and puts else kind
    found = (FUNCTIONS[f.name] for f in reversed(calls) if f.name in FUNCTIONS)
    return next(found, "other")


def _by_call(call: str, on: str) -> Wait | None:
    if call in ("open", "openat") and on:
        alone = ", whose other end no process opens," if on.startswith(A_NAMED_PIPE) else ""
        return Wait("open", f"is waiting to open {on}{alone}")
    if call in (*READS, *WRITES):
        return _at_a_file(call, on)
    if call not in CALLS:
        return None
    kind, words = CALLS[call]
    if kind == "file_lock" and on:
        return Wait(kind, f"is waiting for the lock on the file {on}")
    return Wait(kind, f"{words} ({on})" if on else words)


def _at_a_file(call: str, on: str) -> Wait | None:
    """A disk is left out: it may still answer."""
    if on.startswith("/"):
        return None
    if on == A_PIPE:
        does = "read from" if call in WRITES else "write to"
        return Wait("pipe", f"is waiting for another process to {does} the pipe")
    return Wait("socket", f"{ANSWER} ({on})" if on else ANSWER)


def _named(on: str, children: Sequence[ChildProcess]) -> str:
    """`process 4711, python`"""
    child = next((c for c in children if on == f"process {c.pid}"), None)
    return f"{on}, {child.name}" if child is not None else on
