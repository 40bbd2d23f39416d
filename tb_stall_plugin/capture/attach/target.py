"""A process to look at: whether it can be examined, and what it runs on."""

from __future__ import annotations

import os
import pwd
import re
import socket
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from stall_analyzer import __version__
from stall_analyzer.captures.capture_format import FORMAT
from stall_analyzer.captures.capture_records import Environment, Task
from stall_analyzer.captures.record_json import from_json
from tb_stall_plugin.capture.attach.refusals import Refused, ended
from tb_stall_plugin.capture.process.about import cluster_in
from tb_stall_plugin.capture.process.child_processes import PROCESSES, TICKS_PER_S, stat_of

PARENT, STARTED = 1, 19  # fields of /proc/PID/stat, counted from after the name
GONE = ("Z", "X")
LONGEST_COMMAND = 100
# The variables in which launchers tell a process its rank and the number of ranks.
RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"), ("RANK", "WORLD_SIZE"),
)  # fmt: skip
# Files that TensorFlow opens to use a device other than the CPU.
DEVICES = re.compile(r"/dev/(nvidia|kfd|dri|accel|vfio)")
VERSION = re.compile(r"python(3\.\d+)")


class Target:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.folder = PROCESSES / str(pid)
        if not PROCESSES.joinpath("self/stat").exists():
            raise Refused("attach needs Linux: it reads /proc")
        try:
            self.name, fields = stat_of(self.folder)
            owner = self.folder.stat().st_uid
        except (OSError, ValueError):
            raise Refused(f"there is no process {pid}") from None
        if fields[0] in GONE:
            raise Refused(
                f"process {pid} has ended (a zombie that its parent {fields[PARENT]} has not "
                "waited for yet): there is nothing left to examine"
            )
        if os.geteuid() not in (0, owner):
            raise Refused(
                f"process {pid} belongs to {_user(owner)}: run this as that user, or as root "
                f"(sudo env PATH=$PATH stall-analyze attach {pid})"
            )
        self.parent = int(fields[PARENT])
        self._started = fields[STARTED]

    @property
    def began_unix_s(self) -> float:
        uptime_s = float((PROCESSES / "uptime").read_text().split()[0])
        return time.time() - uptime_s + int(self._started) / TICKS_PER_S

    def check(self) -> None:
        """Raises unless it is still there, and not another process with the same number."""
        try:
            fields = stat_of(self.folder)[1]
        except OSError:
            raise ended(self.pid) from None
        if fields[STARTED] != self._started or fields[0] in GONE:
            raise ended(self.pid)

    @property
    def command(self) -> tuple[str, ...]:
        return _words(self.folder / "cmdline")

    @property
    def title(self) -> str:
        """`process 4711 (python train.py)`"""
        said = " ".join(self.command)[:LONGEST_COMMAND] or self.name
        return f"process {self.pid} ({said})"

    @cached_property
    def variables(self) -> Mapping[str, str]:
        pairs = (word.partition("=") for word in _words(self.folder / "environ"))
        return {name: value for name, _, value in pairs}

    @property
    def environment(self) -> Environment:
        task, cluster = self._task()
        return Environment(
            format=FORMAT,
            tool=__version__,
            host=socket.gethostname(),
            pid=self.pid,
            parent=self.parent,
            python=self._python(),
            devices=self._devices(),
            task=task,
            cluster=cluster,
            attached=True,
        )

    def _task(self) -> tuple[Task | None, Mapping[str, tuple[str, ...]] | None]:
        config = cluster_in(self.variables)
        known = from_json(Environment, config)
        if known is not None and known.task is not None:
            return known.task, known.cluster
        for rank, size in RANKS:
            index, count = self.variables.get(rank, ""), self.variables.get(size, "")
            if index.isdecimal() and count.isdecimal() and int(count) > 1:
                return Task("worker", int(index)), {"worker": ("",) * int(count)}
        return None, None

    def _python(self) -> str:
        try:
            match = VERSION.search(str((self.folder / "exe").readlink()))
        except OSError:
            return ""
        return match[1] if match else ""

    def _devices(self) -> tuple[str, ...] | None:
        """The CPU alone, if no file of another device is open; otherwise they are not known."""
        try:
            files = [os.readlink(file) for file in (self.folder / "fd").iterdir()]  # noqa: PTH115
        except OSError:
            return None
        return None if any(map(DEVICES.match, files)) else ("CPU:0",)


def _words(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_bytes().decode(errors="replace")
    except OSError:
        return ()
    return tuple(text.rstrip("\0").split("\0")) if text else ()


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user with ID {number}"
