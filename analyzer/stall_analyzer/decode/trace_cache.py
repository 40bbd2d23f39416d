"""A cache of traces: those used last stay in memory, the others are read again when needed.

A trace is needed three times: to find its place, to divide its time, and if its host represents the
run or is looked at in the tab. The traces of a large cluster do not fit in memory at once, and
reading a file again is faster than swapping.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Trace

# Bytes of trace files. Decoded, a trace takes about as much memory as its file takes on disk.
ROOM_BYTES = 1 << 30


class TraceCache:
    def __init__(self, read: Callable[[HostFile], Trace], room_bytes: int = ROOM_BYTES) -> None:
        self._read = read
        self._room_bytes = room_bytes
        self._kept: OrderedDict[str, tuple[HostFile, Trace]] = OrderedDict()

    def put(self, file: HostFile, trace: Trace) -> CachedTrace:
        """Returns what represents the trace from now on."""
        self._make_room(file.size)
        self._kept[file.path] = file, trace
        return CachedTrace(file, self)

    def take(self, file: HostFile) -> Trace:
        """Raises UnreadableFile if it must be read again and cannot."""
        if file.path not in self._kept:
            self._make_room(file.size)
            self._kept[file.path] = file, self._read(file)
        self._kept.move_to_end(file.path)
        return self._kept[file.path][1]

    def _make_room(self, size: int) -> None:
        taken = sum(file.size for file, _ in self._kept.values())
        while self._kept and taken + size > self._room_bytes:
            _, (file, _) = self._kept.popitem(last=False)
            taken -= file.size


@dataclass(frozen=True, eq=False)
class CachedTrace:
    """Represents a trace until its content is needed."""

    file: HostFile
    cache: TraceCache

    @property
    def host(self) -> str:
        return self.file.host

    @property
    def path(self) -> str:
        return self.file.path

    def read(self) -> Trace:
        return self.cache.take(self.file)
