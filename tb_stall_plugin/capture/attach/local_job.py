"""The processes on this machine that belong to one job."""

from __future__ import annotations

from collections.abc import Iterator

from tb_stall_plugin.capture.attach.refusals import Refused
from tb_stall_plugin.capture.attach.target import Target
from tb_stall_plugin.capture.process.about import cluster_in
from tb_stall_plugin.capture.process.child_processes import PROCESSES

INIT = 1  # it adopts processes whose launcher has ended: they have nothing in common


def job_of(target: Target) -> list[Target]:
    """The processes of its job, including itself, in the order of their numbers."""
    others = (other for other in _others(target) if _are_together(target, other))
    return sorted((target, *others), key=lambda each: each.pid)


def _others(target: Target) -> Iterator[Target]:
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            other = Target(int(folder.name))
        except Refused:  # it has ended, or belongs to somebody else
            continue
        if other.pid != target.pid:
            yield other


def _are_together(one: Target, other: Target) -> bool:
    """Whether both are of one cluster, or run the same program for the same launcher."""
    clusters = [cluster_in(each.variables).get("cluster") for each in (one, other)]
    if clusters[0] and clusters[1]:
        return bool(clusters[0] == clusters[1])
    same_parent = one.parent == other.parent > INIT
    return same_parent and _program(one) == _program(other) != ()


def _program(target: Target) -> tuple[str, ...]:
    """`python -m train`, without the arguments, which may differ between ranks."""
    command = target.command
    last = next((n for n, word in enumerate(command[1:], 1) if not word.startswith("-")), 0)
    return command[: last + 1]
