"""What TensorFlow's debugger saw of a run's tensors: what `tfdbg` returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import Int64s

OpKey: TypeAlias = tuple[str, str]  # id of the graph, name of the op


TensorKey: TypeAlias = tuple[str, str, int]  # the same, and which of its outputs


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's own code."""

    path: str
    line: int
    function: str
    text: str = ""  # the line itself, if the dump contains its file


@dataclass(frozen=True)
class DumpedOp:
    """An op of a graph, or one eager execution of an op (then `graph` is "")."""

    type: str
    graph: str  # name of the graph
    inputs: tuple[str, ...]  # "name:output"
    line: CodeLine | None = None


@dataclass(frozen=True)
class DumpedTensor:
    """Everything that was dumped about one output of an op."""

    records: int
    first_ns: int  # its first record
    bad_ns: int | None = None  # when it was first not finite
    after_bad_ns: int | None = None  # its next record
    has_nan: bool = False  # at that time; both are True if the dump does not tell them apart
    has_inf: bool = False
    zero_share: float | None = None  # of its elements, over all records; None if not dumped
    all_zero_run: int = 0  # how many of its last records hold nothing but zeros
    nearly_zero_run: int = 0  # … almost nothing but zeros


@dataclass(frozen=True)
class DebugDump:
    """What the debugger saw of a run's tensors."""

    mode: str  # how much of each tensor was dumped, as TensorFlow calls it
    looked_at: int  # records that tell whether a tensor was finite
    start_ns: int
    tensors: Mapping[TensorKey, DumpedTensor]
    ops: Mapping[OpKey, DumpedOp]
    call_ends_ns: Int64s  # when calls of tf.functions returned
    notes: tuple[Note, ...] = ()
