"""One host's trace as columns: what `decode` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Protocol, TypeAlias

from stall_analyzer.model.kinds import Framework
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Bools, Int32s, Int64s, UInt32s

StatValue: TypeAlias = "int | float | str | bytes"


@dataclass(frozen=True)
class OpCost:
    """What one execution of a device's op costs, according to the compiler."""

    memory_bytes: int  # read from and written to the device's main memory


@dataclass(frozen=True)
class Plane:
    """A device or the host."""

    name: str
    stats: Mapping[str, StatValue]
    op_costs: Mapping[str, OpCost] = field(default_factory=dict)  # by event name


@dataclass(frozen=True)
class Line:
    """A thread of a plane, or a stream of a device."""

    plane: int  # index into Trace.planes
    id: int
    name: str  # the display name, if there is one
    first_event: int  # its rows in Events are [first_event, last_event)
    last_event: int


@dataclass(frozen=True)
class Events:
    """Kept events, ordered by line, then start, then longest first.

    `parent` is the row of the innermost kept event on the same line that contains this one, or -1.
    Short or uninteresting events are folded: they have no row, but `folded` of the innermost kept
    event around them has the bits of what was folded into it (see vocabulary.py), and the totals in
    `Trace.totals` count them.
    """

    start_ps: Int64s
    duration_ps: Int64s
    line: Int32s
    name: Int32s  # index into Trace.names
    parent: Int32s
    folded: UInt32s

    @cached_property
    def end_ps(self) -> Int64s:
        return self.start_ps + self.duration_ps

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True)
class StatColumn:
    """One kind of stat over the kept events that carry it, ordered by event row.

    Integers are stored as they are (unsigned ones wrapped to int64); for text, `values` are
    indices into Trace.strings; for doubles, `values` hold the IEEE bits.
    """

    event: Int32s
    values: Int64s
    kind: str  # "int" | "text" | "double"


@dataclass(frozen=True)
class NameTotals:
    """Per event name, over all events of the file, kept or folded (not dropped)."""

    count: Int64s
    total_ps: Int64s
    self_ps: Int64s


@dataclass(frozen=True)
class Trace:
    """One host's trace. `start_ps` of its events counts from `base_unix_ns` or, if the trace has no
    absolute clock, from its own beginning (`base_unix_ns` is None)."""

    host: str
    path: str
    planes: tuple[Plane, ...]
    lines: tuple[Line, ...]
    names: tuple[str, ...]
    strings: tuple[str, ...]
    events: Events
    stats: Mapping[str, StatColumn]
    totals: NameTotals
    base_unix_ns: int | None
    stop_unix_ns: int | None  # when profiling ended, if the trace says so
    errors: tuple[str, ...] = ()  # XSpace.errors: what the profiler itself complained about
    notes: tuple[Note, ...] = ()
    is_cut: bool = False  # the file ends early
    framework: Framework = "tensorflow"

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The index of each name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def passed(self) -> dict[Callable[[str], bool], Bools]:
        """For each test that was asked for, which names pass it."""
        return {}

    @cached_property
    def _after(self) -> dict[str, dict[str, int]]:
        return {}

    def numbers_after(self, prefix: str) -> Mapping[str, int]:
        """For names that begin with `prefix`: what follows it, and the index of the name."""
        if prefix not in self._after:
            self._after[prefix] = {
                name.removeprefix(prefix): number
                for name, number in self.numbers.items()
                if name.startswith(prefix)
            }
        return self._after[prefix]

    def read(self) -> Trace:
        return self


class TraceSource(Protocol):
    """A trace that may have to be read first, since those of a large cluster do not all fit in
    memory."""

    @property
    def host(self) -> str: ...

    @property
    def path(self) -> str: ...

    def read(self) -> Trace: ...
