"""Memory, cores and files of a process, as the kernel reports them. Each source may be missing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from stall_analyzer.captures.capture_format import HostMetric
from tb_stall_plugin.capture.process.child_processes import cpu_seconds, stat_of

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
UNLIMITED_BYTES = 1 << 60  # version 1 of cgroups uses a huge number for "no limit"
MAJOR_FAULTS_FIELD = 9  # of /proc/self/stat, counted from after the name


class HostSampler:
    """Returns what can be known; a source that fails once is not asked again."""

    def __init__(self, proc: Path = PROC, cgroups: Path = CGROUPS, pid: int | None = None) -> None:
        """`pid`: the process to look at, if it is not this one."""
        self._self = proc / ("self" if pid is None else str(pid))
        self._is_other = pid is not None
        self._meminfo = proc / "meminfo"
        memory = list(_cgroup_folders(self._self, cgroups, "memory"))
        cores = list(_cgroup_folders(self._self, cgroups, "cpu"))
        self._limits = [
            path
            for folder in memory
            for path in (folder / "memory.max", folder / "memory.limit_in_bytes")
            if path.exists()
        ]
        stalls = [*(folder / "memory.pressure" for folder in memory), proc / "pressure/memory"]
        self._pressure = _first_of(stalls)
        self._throttling = _first_of([folder / "cpu.stat" for folder in cores])
        self._sources: list[Callable[[], Mapping[str, float]]] = [
            self._cpu, self._size, self._faults, self._machine, self._reads,
            self._stalled, self._throttled, self._files,
        ]  # fmt: skip
        # These two count from the start of the machine or the container.
        self._before: dict[str, float] = {}
        first = self.sample()
        self._before = {
            name: first[name]
            for name in (HostMetric.MEMORY_STALLED, HostMetric.THROTTLED)
            if name in first
        }

    def sample(self) -> dict[str, float]:
        """By the names of `capture_format.HostMetric`."""
        found: dict[str, float] = {}
        for source in tuple(self._sources):
            try:
                found.update(source())
            except (OSError, ValueError, LookupError):  # noqa: PERF203
                self._sources.remove(source)
        for name, before in self._before.items():
            if name in found:
                found[name] -= before
        return found

    def _cpu(self) -> Mapping[str, float]:
        used_s = cpu_seconds(stat_of(self._self)[1]) if self._is_other else time.process_time()
        return {HostMetric.CPU: used_s}

    def _size(self) -> Mapping[str, float]:
        pages = (self._self / "statm").read_text().split()[1]
        return {HostMetric.RSS: int(pages) * PAGE_BYTES}

    def _faults(self) -> Mapping[str, float]:
        fields = (self._self / "stat").read_text().rpartition(")")[2].split()
        return {HostMetric.MAJOR_FAULTS: int(fields[MAJOR_FAULTS_FIELD])}

    def _machine(self) -> Mapping[str, float]:
        sizes = {}
        for line in self._meminfo.read_text().splitlines():
            name, _, rest = line.partition(":")
            sizes[name] = int(rest.split()[0]) * 1024
        limits = [_bytes(path.read_text()) for path in self._limits]
        return {
            HostMetric.AVAILABLE: sizes["MemAvailable"],
            HostMetric.SWAP_USED: sizes["SwapTotal"] - sizes["SwapFree"],
            HostMetric.LIMIT: min([sizes["MemTotal"], *limits]),
        }

    def _reads(self) -> Mapping[str, float]:
        for line in (self._self / "io").read_text().splitlines():
            name, _, count = line.partition(": ")
            if name == "read_bytes":
                return {HostMetric.READ: int(count)}
        return {}

    def _stalled(self) -> Mapping[str, float]:
        """`some …  total=<microseconds>`: at least one thread waited for memory."""
        some = self._pressure.read_text().splitlines()[0]
        return {HostMetric.MEMORY_STALLED: int(some.rpartition("total=")[2]) / 1e6}

    def _throttled(self) -> Mapping[str, float]:
        fields = dict(line.split() for line in self._throttling.read_text().splitlines())
        if "throttled_usec" in fields:
            return {HostMetric.THROTTLED: int(fields["throttled_usec"]) / 1e6}
        return {HostMetric.THROTTLED: int(fields["throttled_time"]) / 1e9}

    def _files(self) -> Mapping[str, float]:
        # Linux 6.2 and newer count them for us; listing ten thousand files would take a while.
        folder = self._self / "fd"
        return {HostMetric.OPEN_FILES: folder.stat().st_size or len(os.listdir(folder))}  # noqa: PTH208


def _bytes(limit: str) -> int:
    return UNLIMITED_BYTES if limit.strip() == "max" else int(limit)


def _first_of(paths: list[Path]) -> Path:
    return next((path for path in paths if path.exists()), Path("/nonexistent"))


def _cgroup_folders(process: Path, cgroups: Path, controller: str) -> Iterator[Path]:
    """A process's groups, innermost first: the limit of any of them applies.

    A container may show the path that its host sees, which does not exist inside of it. Its own
    group is the root there, so the way up ends at that.
    """
    try:
        lines = (process / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            root = cgroups / controller
        elif not controllers:  # version 2
            root = cgroups
        else:
            continue
        group = Path(path.lstrip("/"))
        for folder in (group, *group.parents):
            yield root / folder
