"""The children of a process (by default, of this one), from /proc: whether they live, and in which
system call they wait."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from stall_analyzer.captures.look_records import ChildProcess
from tb_stall_plugin.capture.process import kernel_view

MOST_CHILDREN = 32
PROCESSES = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
USER_TIME, SYSTEM_TIME = 11, 12  # fields of /proc/PID/stat, counted from after the name


def child_processes(process: Path = kernel_view.PROCESS) -> tuple[ChildProcess, ...]:
    known = _names_of_multiprocessing() if process == kernel_view.PROCESS else {}
    found = (_child(number, known) for number in sorted(_numbers(process)))
    return tuple(child for child in found if child is not None)[:MOST_CHILDREN]


def _numbers(process: Path) -> Iterator[int]:
    for task in (process / "task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except OSError:  # noqa: PERF203 (the thread has ended, or the kernel was built without it)
            continue


def _child(number: int, known: dict[int, str]) -> ChildProcess | None:
    folder = PROCESSES / str(number)
    try:
        name, fields = stat_of(folder)
        call = kernel_view.call_of(folder)
        return ChildProcess(number, known.get(number) or name, fields[0], call, cpu_seconds(fields))
    except (OSError, ValueError, IndexError):
        return None


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """The name of a process in /proc, and the fields after it, beginning with its state."""
    head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
    return head.partition("(")[2], rest.split()


def cpu_seconds(fields: list[str]) -> float:
    return (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / TICKS_PER_S


def _names_of_multiprocessing() -> dict[int, str]:
    """The names that Python gave them. Does not use `active_children`, which reaps ended ones."""
    module = sys.modules.get("multiprocessing.process")
    children = tuple(getattr(module, "_children", ()))
    return {child.pid: child.name for child in children if child.pid is not None}
