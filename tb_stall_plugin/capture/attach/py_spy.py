"""Python stacks of another process, read by py-spy.

The process is never stopped (`--nonblocking`). A stop interrupts system calls, some of which then
fail (epoll_wait, semop, sockets with a timeout), and it wakes threads, so that a blocked thread
would look as if it had run. Nothing is lost, since what hangs does not move. A running thread may
change while it is read; then py-spy is asked again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_stall_plugin.capture.attach.refusals import Refused, StacksRefused, ended
from tb_stall_plugin.capture.process.thread_stacks import cut

TRIES = 20  # a running process changes while it is read, especially on a busy machine
PAUSE_S = 0.05
SLOWEST_S = 60.0  # on a machine that swaps; otherwise it takes a tenth of a second
NO_PYTHON = ("find python version", "find a python", "python interpreter", "find interpreter")
NOT_ALLOWED = ("permission denied", "operation not permitted")


@dataclass(frozen=True)
class PythonFrame:
    path: str
    line: int
    function: str
    numbers: frozenset[str] = frozenset()  # names of locals that are plain numbers, if asked for

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}"


@dataclass(frozen=True)
class PythonThread:
    number: int  # the kernel's number of the thread
    name: str
    frames: tuple[PythonFrame, ...]  # innermost first

    @property
    def texts(self) -> tuple[str, ...]:
        return cut([str(frame) for frame in self.frames])


def threads_of(pid: int, with_locals: bool = False) -> tuple[PythonThread, ...]:
    program = _program()
    if program is None:
        raise StacksRefused(
            "py-spy, which reads the stacks of other processes, is not installed: "
            "pip install 'tensorboard-plugin-stall[attach]'"
        )
    asked = ["--locals"] if with_locals else []
    command = [program, "dump", "--json", "--nonblocking", "--pid", str(pid), *asked]
    for _ in range(TRIES):
        done = _run(command, pid)
        if done.returncode == 0:
            return _read(done.stdout)
        _refuse_for_good(pid, done.stderr)
        time.sleep(PAUSE_S)
    if any(words in done.stderr.lower() for words in NO_PYTHON):
        raise Refused(f"process {pid} is not a Python process, or has not started Python yet")
    why = next(iter(done.stderr.strip().splitlines()), "the reason is not known").removeprefix(
        "Error: "
    )
    raise StacksRefused(f"py-spy could not read the stacks of process {pid}: {why}")


def _run(command: Sequence[str], pid: int) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=SLOWEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise StacksRefused(f"py-spy did not finish reading process {pid}") from None
    except OSError as error:
        raise StacksRefused(f"py-spy could not be started: {error.strerror}") from None


def _program() -> str | None:
    """Prefers the py-spy of this Python: it may not be on the PATH."""
    ours = Path(sysconfig.get_path("scripts")) / "py-spy"
    return str(ours) if ours.exists() else shutil.which("py-spy")


def _refuse_for_good(pid: int, said: str) -> None:
    said = said.lower()
    if not Path(f"/proc/{pid}").exists():
        raise ended(pid)
    if any(words in said for words in NOT_ALLOWED):
        raise StacksRefused(
            f"this user is not allowed to read process {pid}: run this as root (sudo env "
            f"PATH=$PATH stall-analyze attach {pid}), start the container with --cap-add "
            "SYS_PTRACE, or allow it until the next boot (sudo sysctl kernel.yama.ptrace_scope=0)"
        )


def _read(text: str) -> tuple[PythonThread, ...]:
    found = json.loads(text)
    return tuple(
        PythonThread(
            thread.get("os_thread_id") or 0,
            thread.get("thread_name") or "",
            tuple(map(_frame, thread["frames"])),
        )
        for thread in found
    )


def _frame(frame: dict[str, Any]) -> PythonFrame:
    known = {v["name"]: v.get("repr") or "" for v in frame.get("locals") or ()}
    numbers = frozenset(name for name, text in known.items() if _is_number(text))
    return PythonFrame(frame["filename"], frame["line"], frame["name"], numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("True", "False", "None")
    return True
