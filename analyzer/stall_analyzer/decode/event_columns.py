"""The columns that both decoders fill, and the tables that tell them how.

`Core` is the seam between the Python around the decoder and its two hot loops: _xplane (native)
and pure. Both append to the same bytearrays, which numpy then reads without a copy.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from stall_analyzer.decode import vocabulary
from stall_analyzer.model.records import dataclass

# The same constants are in _events.h.
TIME_LIMIT_PS = 1 << 60  # thirteen days; sums of three still fit in int64
OVERHANG_PS = 1_000  # a child may end this much after its parent: clocks are read in nanoseconds
EVENT_LIMIT = 16 << 20  # bytes; real events have a few hundred at most
TEXT_LIMIT = 64 << 10  # bytes; longer texts are cut
UNNAMED_KINDS = 4096  # further ids without a name share the last one
TELL_EVERY = 4 << 20  # bytes between two calls of `progress`
UNNAMED_ROWS = 1 << 20  # per file; further ones are folded, so memory stays bounded
KIND_INT, KIND_DOUBLE, KIND_TEXT, KIND_REF = range(4)
NO_COLUMN = 255

STAT_NAMES = tuple(sorted(vocabulary.KEPT_STATS))
# An event with one of these stats is kept whatever its name and length: they mark steps, calls of a
# tf.function and the roots of an execution.
PINNED_STATS = frozenset({"tf_function_call", "step_num", "_r"})
PINNED = bytes(name in PINNED_STATS for name in STAT_NAMES)
# Only events with the same value of this stat may share a row.
IDENTITY_COLUMN = STAT_NAMES.index("id")

# Called while a file is read, with the number of bytes that are done.
BytesRead: TypeAlias = Callable[[int], None]
# start_ps, duration_ps, slot, parent, folded
Rows: TypeAlias = tuple[bytearray, bytearray, bytearray, bytearray, bytearray]
# event row, value, kind
StatRows: TypeAlias = tuple[bytearray, bytearray, bytearray]


def _no_rows() -> Rows:
    return bytearray(), bytearray(), bytearray(), bytearray(), bytearray()


def _no_stats() -> tuple[StatRows, ...]:
    return tuple((bytearray(), bytearray(), bytearray()) for _ in STAT_NAMES)


@dataclass(frozen=True)
class Columns:
    """All kept events of a file, growing plane by plane."""

    rows: Rows = field(default_factory=_no_rows)
    stats: tuple[StatRows, ...] = field(default_factory=_no_stats)

    def __len__(self) -> int:
        return len(self.rows[0]) // 8


@dataclass(frozen=True)
class Tables:
    """What the decoder must know about a plane. An event's slot is its index in `names`, a stat's
    number is its index in `stat_names`; both are in the order of the file."""

    names: tuple[str, ...]
    event_ids: bytes  # int64
    keep_from_ps: bytes  # int64
    join_gap_ps: bytes  # int64
    fold_bits: bytes  # uint32
    stat_names: tuple[str, ...]
    stat_ids: bytes  # int64
    stat_column: bytes  # index into STAT_NAMES or NO_COLUMN

    @classmethod
    def of(
        cls,
        plane_name: str,
        names: Mapping[int, str],
        stats: Mapping[int, str],
        shortest_ps: int | None = None,
    ) -> Tables:
        """`shortest_ps`: events of at least this length get a row, even if the analysis does not
        need it."""
        column = {name: i for i, name in enumerate(STAT_NAMES)}
        from_ps = partial(vocabulary.keep_from_ps, plane_name)
        keep_from_ps: Iterable[int] = map(from_ps, names.values())
        if shortest_ps is not None:
            keep_from_ps = (min(ps, shortest_ps) for ps in keep_from_ps)
        return cls(
            names=tuple(names.values()),
            event_ids=int64s(names),
            keep_from_ps=int64s(keep_from_ps),
            join_gap_ps=int64s(map(vocabulary.join_gap_ps, names.values())),
            fold_bits=array("I", map(vocabulary.fold_bits, names.values())).tobytes(),
            stat_names=tuple(stats.values()),
            stat_ids=int64s(stats),
            stat_column=bytes(column.get(name, NO_COLUMN) for name in stats.values()),
        )

    @property
    def raw(self) -> RawTables:
        """In the form that a core takes."""
        return (self.event_ids, self.keep_from_ps, self.join_gap_ps, self.fold_bits,
                self.stat_ids, self.stat_column, PINNED, IDENTITY_COLUMN)  # fmt: skip


def int64s(values: Iterable[int]) -> bytes:
    return array("q", values).tobytes()


class LineResult(NamedTuple):
    last_row: int  # one past the line's last row
    good: int
    bad: int  # events that make no sense
    stopped_at: int  # its end, or where its bytes stopped making sense
    name_begin: int  # the display name in the file; both are 0 if there is none
    name_end: int


class PlaneResult(NamedTuple):
    lines: list[LineResult]
    unnamed: list[int]  # ids without a name; their slots follow those of the tables
    totals: bytes  # count, total_ps, self_ps as int64 by slot
    texts: list[bytes]


# event_ids, keep_from_ps, join_gap_ps, fold_bits, stat_ids, stat_column of Tables, PINNED and
# IDENTITY_COLUMN
RawTables: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, int]
# LineResults, unnamed, totals, texts
RawResult: TypeAlias = tuple[
    list[tuple[int, int, int, int, int, int]], list[int], bytes, list[bytes]
]


class Core(Protocol):
    """The hot loop: appends the kept events of a plane to `columns`.

    `lines` holds begin, end and shift_ps of each line as int64; at most `unnamed_rows` events
    without a name get rows; `progress` is told the current position in the file.
    """

    def __call__(
        self,
        fd: int,
        lines: bytes,
        tables: RawTables,
        columns: tuple[Rows, tuple[StatRows, ...]],
        unnamed_rows: int,
        progress: BytesRead,
        /,
    ) -> RawResult: ...
