"""What is wrong with a cluster's configuration, as its members' captures recorded it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from stall_analyzer.model.cluster import SettingsFault
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import counted, listed

LOOPBACK = ("localhost", "127.", "[::1]", "::1", "0.0.0.0")


def settings_faults(captures: Sequence[Capture]) -> tuple[SettingsFault, ...]:
    clustered = [capture for capture in captures if capture.environment.cluster]
    faults = (
        _same_task_twice(clustered),
        _different_sizes(clustered),
        _no_such_task(clustered),
        _same_address_twice(clustered),
        _loopback(clustered),
    )
    return tuple(fault for fault in faults if fault is not None)


def _same_task_twice(captures: Sequence[Capture]) -> SettingsFault | None:
    for one, other in combinations(captures, 2):
        mine, theirs = one.environment, other.environment
        together = one.first_ns < other.last_ns and other.first_ns < one.last_ns
        if together and mine.task is not None and mine.task == theirs.task:
            who = " and ".join(f"{e.host} (process {e.pid})" for e in (mine, theirs))
            return SettingsFault(
                f"Two processes claim to be {mine.task}",
                f"{who} both say that they are {mine.task}. The cluster then waits for a task "
                f"that no process has, or mistakes the second process for a restart of the first.",
            )
    return None


def _different_sizes(captures: Sequence[Capture]) -> SettingsFault | None:
    sizes = {
        str(c.environment.task or c.environment.host): len(c.environment.training_tasks)
        for c in captures
    }
    if len(set(sizes.values())) < 2:
        return None
    said = listed([f"{name} ({size})" for name, size in sizes.items()])
    return SettingsFault(
        "The workers disagree about the size of the cluster",
        f"TF_CONFIG lists different numbers of tasks on {said}. Collectives that expect different "
        f"numbers of workers never match.",
    )


def _no_such_task(captures: Sequence[Capture]) -> SettingsFault | None:
    for capture in captures:
        task, tasks = capture.environment.task, capture.environment.cluster or {}
        known = len(tasks.get(task.type, ())) if task is not None else 1
        if task is not None and task.index >= known:
            listed_there = f"only {counted(known, 'task')}" if known else "no task"
            return SettingsFault(
                f"There is no {task} in the cluster",
                f"The TF_CONFIG of {capture.environment.host} makes it {task}, but lists "
                f"{listed_there} of that type; indices start at 0.",
            )
    return None


def _same_address_twice(captures: Sequence[Capture]) -> SettingsFault | None:
    for capture in captures:
        tasks = capture.environment.cluster or {}
        count = Counter(address for addresses in tasks.values() for address in addresses)
        twice = [address for address, times in count.items() if times > 1]
        if twice:
            return SettingsFault(
                f"The address {twice[0]} is listed more than once",
                "Each task needs its own address; two tasks cannot listen on the same one.",
            )
    return None


def _loopback(captures: Sequence[Capture]) -> SettingsFault | None:
    hosts = list(dict.fromkeys(capture.environment.host for capture in captures))
    addresses = [
        address
        for capture in captures
        for listed_there in (capture.environment.cluster or {}).values()
        for address in listed_there
    ]
    local = next((address for address in addresses if address.startswith(LOOPBACK)), None)
    if len(hosts) < 2 or local is None:
        return None
    return SettingsFault(
        f"The cluster spans several machines, but lists {local}",
        f"{listed(hosts)} are different machines, and on each of them {local} refers to "
        f"that machine itself.",
    )
