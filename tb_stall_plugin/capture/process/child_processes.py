"""The processes that this one started, as /proc has them: alive, dead, and what they wait in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from stall_analyzer.captures.capture_records import ChildProcess
from tb_stall_plugin.capture.process import kernel_view

MOST_CHILDREN = 32
PROCESSES = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
USER_TIME, SYSTEM_TIME = 11, 12  # fields of /proc/PID/stat, counted behind the name


def child_processes() -> tuple[ChildProcess, ...]:
    known = _names_of_multiprocessing()
    found = (_child(number, known) for number in sorted(_numbers()))
    return tuple(child for child in found if child is not None)[:MOST_CHILDREN]


def _numbers() -> Iterator[int]:
    for task in (PROCESSES / "self/task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except OSError:  # noqa: PERF203 (the thread has ended, or the kernel was built without it)
            continue


def _child(number: int, known: dict[int, str]) -> ChildProcess | None:
    folder = PROCESSES / str(number)
    try:
        head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
        fields = rest.split()
        cpu_s = (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / TICKS_PER_S
        name = known.get(number) or head.partition("(")[2]
        return ChildProcess(number, name, fields[0], kernel_view.call_of(folder), cpu_s)
    except (OSError, ValueError, IndexError):
        return None


def _names_of_multiprocessing() -> dict[int, str]:
    """Names that Python gave them. Not `active_children`, which reaps those that have ended."""
    module = sys.modules.get("multiprocessing.process")
    children = tuple(getattr(module, "_children", ()))
    return {child.pid: child.name for child in children if child.pid is not None}
