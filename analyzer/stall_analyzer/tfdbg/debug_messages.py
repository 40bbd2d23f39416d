"""The messages in the files of TensorFlow's debugger (tfdbg2), decoded but not interpreted.

tf.debugging.experimental.enable_dump_debug_info writes `tfdbg_events.<unix seconds>.<host>.<part>`,
TFRecord files of DebugEvents. An event is 1 wall_time and what its file is for:

    metadata                3   3 run id
    source_files            4   1 path  3 line*
    stack_frames            6   1 id  2 (1 index of the source file  2 line  4 function)
    graphs                  7   1 type  2 name  3 graph  4 graph id  6 input*  8 (2 frame id*)
    execution               9   1 type  3 graph id  4 input id*  5 output id*  6 mode  7 tensor*
                                8 (2 frame id*)
    graph_execution_traces  10  1 graph id  2 op  3 output  4 mode  5 tensor
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

from tensorboard.compat.proto.tensor_pb2 import TensorProto

from stall_analyzer.errors import WireError
from stall_analyzer.events.tensors import floats_of, parsed
from stall_analyzer.events.wall_times import wall_ns_of
from stall_analyzer.files import wire
from stall_analyzer.files.tfrecord import Record, RecordFile, is_intact, read_records
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import DumpFiles
from stall_analyzer.model.units import Float64s

# The text of a longer source file is ignored; no person wrote it.
MOST_SOURCE_BYTES = 4 * 1024 * 1024


class Message:
    """One event and its content; its fields are decoded when first needed."""

    __slots__ = ("_data", "_end", "_found", "_record", "_start", "index", "wall_ns")

    def __init__(self, record: Record, index: int, wall_ns: int, start: int, end: int) -> None:
        self.index = index  # of the record in its file, counting damaged ones
        self.wall_ns = wall_ns
        self._record, self._data = record, record.data
        self._start, self._end = start, end
        self._found: dict[int, list[wire.Field]] | None = None

    @property
    def _fields(self) -> dict[int, list[wire.Field]]:
        if self._found is None:
            self._found = {}
            for found in wire.fields(self._data, self._start, self._end):
                self._found.setdefault(found[0], []).append(found)
                if found[1] != wire.VARINT and found[3] >= len(self._data):
                    break  # only the head of a long record is there
        return self._found

    def first_text(self) -> str:
        """The text of the first field, without decoding the others, which may be many."""
        for _, wire_type, at, to in wire.fields(self._data, self._start, self._end):
            return wire.text(self._data, at, to) if wire_type == wire.BYTES else ""
        return ""

    def check(self) -> None:
        """Raises if the record is damaged; to be called before its values are used."""
        if self._record.is_whole and not is_intact(self._record):
            raise WireError("the checksum of a record does not match")

    def text(self, number: int) -> str:
        return next(iter(self.texts(number)), "")

    def texts(self, number: int) -> Iterator[str]:
        for _, wire_type, at, to in self._fields.get(number, ()):
            if wire_type == wire.BYTES:
                yield wire.text(self._data, at, to)

    def integer(self, number: int) -> int:
        return next(iter(self.integers(number)), 0)

    def integers(self, number: int) -> Iterator[int]:
        """A repeated integer, packed or not."""
        for _, wire_type, at, to in self._fields.get(number, ()):
            if wire_type == wire.VARINT:
                yield at
            position = at
            while wire_type == wire.BYTES and position < to:
                value, position = wire.varint(self._data, position, to)
                yield value

    def messages(self, number: int) -> Iterator[Message]:
        for _, wire_type, at, to in self._fields.get(number, ()):
            if wire_type == wire.BYTES:
                yield Message(self._record, self.index, self.wall_ns, at, to)

    def tensors(self, number: int) -> Iterator[Float64s | None]:
        """The elements of each tensor; None for a tensor that does not hold floats."""
        for _, wire_type, at, to in self._fields.get(number, ()):
            if wire_type == wire.BYTES:
                yield floats_of(parsed(TensorProto, self._data[at:to]))


class SourceFile(NamedTuple):
    path: str
    lines: tuple[str, ...]


class FrameMessage(NamedTuple):
    id: str
    source: int  # index of its source file
    line: int
    function: str


class GraphOp(NamedTuple):
    type: str
    name: str
    graph: str
    graph_id: str
    inputs: tuple[str, ...]
    frames: tuple[str, ...]  # ids, outermost first


class Execution(NamedTuple):
    """One op or function that was run eagerly."""

    type: str
    graph_id: str  # if it is a function
    inputs: tuple[int, ...]  # ids of tensors
    outputs: tuple[int, ...]
    mode: int
    tensors: tuple[Float64s | None, ...]
    frames: tuple[str, ...]


class TraceMessage(NamedTuple):
    """One output of an op in a graph, once."""

    graph_id: str
    op: str
    output: int
    mode: int
    tensor: Float64s | None


def run_id_of(message: Message) -> str:
    return message.text(3)


def source_file_of(message: Message) -> SourceFile:
    return SourceFile(message.text(1), tuple(message.texts(3)))


def frame_of(message: Message) -> FrameMessage:
    place = next(message.messages(2), None)
    if place is None:
        raise WireError("a stack frame without its place")
    return FrameMessage(message.text(1), place.integer(1), place.integer(2), place.text(4))


def graph_op_of(message: Message) -> GraphOp:
    return GraphOp(
        type=message.text(1),
        name=message.text(2),
        graph=message.text(3),
        graph_id=message.text(4),
        inputs=tuple(message.texts(6)),
        frames=_frames(message),
    )


def execution_of(message: Message) -> Execution:
    return Execution(
        type=message.text(1),
        graph_id=message.text(3),
        inputs=tuple(message.integers(4)),
        outputs=tuple(message.integers(5)),
        mode=message.integer(6),
        tensors=tuple(message.tensors(7)),
        frames=_frames(message),
    )


def trace_of(message: Message) -> TraceMessage:
    tensor = next(iter(message.tensors(5)), None)
    return TraceMessage(
        message.text(1), message.text(2), message.integer(3), message.integer(4), tensor
    )


def _frames(message: Message) -> tuple[str, ...]:
    return tuple(frame for code in message.messages(8) for frame in code.texts(2))


FIELDS: dict[str, int] = {
    "metadata": 3,
    "source_files": 4,
    "stack_frames": 6,
    "graphs": 7,
    "execution": 9,
    "graph_execution_traces": 10,
}


def read_part(
    files: DumpFiles, part: str, take: Callable[[Message], None], notes: list[Note]
) -> None:
    """Passes every message of one file to `take`; what cannot be read becomes notes."""
    if part not in files.parts:
        return

    indices = count()

    def look_into(records: RecordFile, record: Record) -> None:
        index = next(indices)
        if part != "source_files" or record.length <= MOST_SOURCE_BYTES:
            found = records.whole(record)
            if found is None:
                raise WireError("a record is too long")
            record = found
        wall_ns = 0
        for number, wire_type, start, end in wire.fields(record.data, 0, record.length):
            if number == 1 and wire_type == wire.FIXED64:
                wall_ns = wall_ns_of(wire.double(record.data, start))
            elif number == FIELDS[part] and wire_type == wire.BYTES:
                take(Message(record, index, wall_ns, start, end))
                return

    read_records(f"{files.prefix}.{part}", "a file of the debugger", look_into, notes)
