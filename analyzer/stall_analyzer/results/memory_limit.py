"""How much memory a worker process may use: one run must not bring the machine down.

A run that needs more is lost with a clear message; without a limit, the system would kill a process
of its own choice.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "STALL_MEMORY_LIMIT"  # bytes for each process; 0 for no limit
SHARE = 0.75  # of the machine, for all processes together
LEAST_BYTES = 2 << 30
# What a container may use: cgroups of version 2 and 1.
OF_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit(processes: int = 1) -> int:
    """Bytes for each of this many processes; 0 if there is no limit, or it is not known."""
    with suppress(ValueError):
        return max(int(os.environ[VARIABLE]), 0) if VARIABLE in os.environ else _share(processes)
    return _share(processes)


def limit_memory(most_bytes: int) -> None:
    """For this process, from now on: beyond the limit, Python raises MemoryError."""
    with suppress(ImportError, OSError, ValueError):  # on Windows, or forbidden
        import resource  # noqa: PLC0415

        _, most_allowed = resource.getrlimit(resource.RLIMIT_DATA)
        if most_allowed != resource.RLIM_INFINITY:
            most_bytes = min(most_bytes, most_allowed)
        if most_bytes > 0:
            resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_allowed))


def _share(processes: int) -> int:
    known = [_physical_bytes(), *map(_container_bytes, OF_CONTAINER)]
    whole = min((bytes for bytes in known if bytes > 0), default=0)
    return max(int(SHARE * whole / max(processes, 1)), LEAST_BYTES) if whole else 0


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def _container_bytes(path: str) -> int:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max", or no such file
        return 0
