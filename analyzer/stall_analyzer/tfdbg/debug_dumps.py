"""Dumps of TensorFlow's debugger (tfdbg2): which tensors were not finite, and which were all zeros.

A dump may hold millions of records of a few thousand tensors, so it is read as a stream and only
sums are kept. Names and source lines are read only if some tensor is interesting.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from stall_analyzer.model.debug_dump import (
    CodeLine,
    DebugDump,
    DumpedOp,
    DumpedTensor,
    OpKey,
    TensorKey,
)
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import DumpFiles, Run
from stall_analyzer.model.units import Float64s
from stall_analyzer.tfdbg.debug_messages import (
    Message,
    SourceFile,
    execution_of,
    frame_of,
    graph_op_of,
    read_part,
    run_id_of,
    source_file_of,
    trace_of,
)

MODES = (
    "UNSPECIFIED", "NO_TENSOR", "CURT_HEALTH", "CONCISE_HEALTH", "FULL_HEALTH", "SHAPE",
    "FULL_NUMERICS", "FULL_TENSOR", "REDUCE_INF_NAN_THREE_SLOTS",
)  # fmt: skip
FUNCTION = ("__inference_", "__forward_", "__backward_")  # how TensorFlow names called functions

# Half of the outputs of healthy rectifiers are zeros, and nine tenths if they are sparse.
NEARLY_ALL = 0.99
# This many tensors are told apart; only a program that builds graphs endlessly has more.
MOST_TENSORS = 500_000
# Eager executions have no names by which to group them: the first bad ones are what matters.
MOST_EAGER = 1_000
# The most that a dump holds of each kind, unless the program asked for more.
DEFAULT_BUFFER = 1_000

# Frames in these belong to Python, to TensorFlow or to another library.
_LIBRARY = re.compile(
    r"[/\\](site-packages|dist-packages|lib[/\\]python3[^/\\]*|tensorflow[/\\]python)[/\\]"
    r"|__autograph_generated_file|<frozen "
)


class _Health(NamedTuple):
    nan: bool
    inf: bool
    zero_share: float | None = None

    @property
    def is_bad(self) -> bool:
        return self.nan or self.inf


@dataclass(slots=True)
class _Tensor:
    """A tensor while its records are being read."""

    first_ns: int
    records: int = 0
    bad_ns: int | None = None
    after_bad_ns: int | None = None
    has_nan: bool = False
    has_inf: bool = False
    zero_sum: float = 0.0
    zero_records: int = 0
    all_zero_run: int = 0
    nearly_zero_run: int = 0

    def take(self, wall_ns: int, health: _Health) -> None:
        self.records += 1
        if self.bad_ns is not None and self.after_bad_ns is None:
            self.after_bad_ns = wall_ns
        if health.is_bad and self.bad_ns is None:
            self.bad_ns, self.has_nan, self.has_inf = wall_ns, health.nan, health.inf
        if health.zero_share is not None:
            self.zero_records += 1
            self.zero_sum += health.zero_share
            self.all_zero_run = self.all_zero_run + 1 if health.zero_share == 1 else 0
            is_nearly = health.zero_share >= NEARLY_ALL
            self.nearly_zero_run = self.nearly_zero_run + 1 if is_nearly else 0

    @property
    def is_worth_asking(self) -> bool:
        return self.bad_ns is not None or self.nearly_zero_run > 0

    def result(self) -> DumpedTensor:
        return DumpedTensor(
            self.records, self.first_ns, self.bad_ns, self.after_bad_ns, self.has_nan, self.has_inf,
            self.zero_sum / self.zero_records if self.zero_records else None,
            self.all_zero_run, self.nearly_zero_run,
        )  # fmt: skip


@dataclass
class _DumpReader:
    """All file sets of one program."""

    notes: list[Note]
    mode: int = 0
    looked_at: int = 0
    executions: int = 0
    traces: int = 0
    first_ns: int | None = None
    tensors: dict[TensorKey, _Tensor] = field(default_factory=dict)
    ops: dict[OpKey, DumpedOp] = field(default_factory=dict)
    call_ends_ns: array[int] = field(default_factory=lambda: array("q"))
    eager: dict[int, str] = field(default_factory=dict)  # ids of bad tensors: "name:output"
    eager_frames: dict[OpKey, tuple[str, ...]] = field(default_factory=dict)
    sources: dict[int, SourceFile] = field(default_factory=dict)  # the user's own
    lines: dict[str, CodeLine] = field(default_factory=dict)  # the user's own, by frame id

    # ------------------------------------------------------------ what was computed

    def read_tensors(self, files: DumpFiles) -> None:
        read_part(files, "graph_execution_traces", self._take_trace, self.notes)
        read_part(files, "execution", self._take_execution, self.notes)

    def _take_trace(self, message: Message) -> None:
        trace = trace_of(message)
        self.traces += 1
        self._saw(message.wall_ns, trace.mode)
        health = _health(trace.mode, trace.tensor)
        if health is None:
            return
        key = trace.graph_id, trace.op, trace.output
        tensor = self.tensors.get(key)
        if health.is_bad and (tensor is None or tensor.bad_ns is None):
            message.check()
        self.looked_at += 1
        if tensor is None and len(self.tensors) < MOST_TENSORS:
            tensor = self.tensors[key] = _Tensor(message.wall_ns)
        if tensor is not None:
            tensor.take(message.wall_ns, health)

    def _take_execution(self, message: Message) -> None:
        execution = execution_of(message)
        self._saw(message.wall_ns, execution.mode)
        if execution.graph_id or execution.type.startswith(FUNCTION):
            self.call_ends_ns.append(message.wall_ns)
        name = f"#{self.executions}"
        self.executions += 1
        healths = [_health(execution.mode, values) for values in execution.tensors]
        self.looked_at += sum(health is not None for health in healths)
        bad = [(n, health) for n, health in enumerate(healths) if health and health.is_bad]
        bad_inputs = tuple(self.eager[i] for i in execution.inputs if i in self.eager)
        if not (bad or bad_inputs) or len(self.eager_frames) >= MOST_EAGER:
            return
        message.check()
        self.ops["", name] = DumpedOp(execution.type, "", bad_inputs)
        self.eager_frames["", name] = execution.frames
        for output, health in bad:
            self.tensors["", name, output] = tensor = _Tensor(message.wall_ns)
            tensor.take(message.wall_ns, health)
            if len(healths) == len(execution.outputs):
                self.eager[execution.outputs[output]] = f"{name}:{output}"

    def _saw(self, wall_ns: int, mode: int) -> None:
        self.mode = mode or self.mode
        self.first_ns = min(self.first_ns or wall_ns, wall_ns)

    # ------------------------------------------------------------ what the program is

    def read_ops(self, files: DumpFiles) -> None:
        """Reads names, inputs and source lines of the ops, if some tensor is interesting."""
        if not any(tensor.is_worth_asking for tensor in self.tensors.values()):
            return
        self.sources.clear()  # frames refer to the source files of their own set
        read_part(files, "source_files", self._take_source, self.notes)
        read_part(files, "stack_frames", self._take_frame, self.notes)
        read_part(files, "graphs", self._take_op, self.notes)
        for key, frames in self.eager_frames.items():
            self.ops[key] = replace(self.ops[key], line=self._line_of(frames))

    def _take_op(self, message: Message) -> None:
        message.check()
        op = graph_op_of(message)
        line = self._line_of(op.frames)
        self.ops[op.graph_id, op.name] = DumpedOp(op.type, op.graph, op.inputs, line)

    def _take_source(self, message: Message) -> None:
        if not _LIBRARY.search(message.first_text()):
            message.check()
            self.sources[message.index] = source_file_of(message)

    def _take_frame(self, message: Message) -> None:
        frame = frame_of(message)
        source = self.sources.get(frame.source)
        if source is None:
            return
        message.check()
        known = 0 < frame.line <= len(source.lines)
        text = source.lines[frame.line - 1].strip() if known else ""
        self.lines[frame.id] = CodeLine(source.path, frame.line, frame.function, text)

    def _line_of(self, frames: Sequence[str]) -> CodeLine | None:
        """The innermost line of the user's own code."""
        return next((self.lines[frame] for frame in reversed(frames) if frame in self.lines), None)

    @property
    def mode_name(self) -> str:
        return MODES[self.mode] if self.mode < len(MODES) else f"mode {self.mode}"

    def result(self, start_s: int) -> DebugDump:
        return DebugDump(
            mode=self.mode_name,
            looked_at=self.looked_at,
            start_ns=self.first_ns if self.first_ns is not None else start_s * 10**9,
            tensors={key: tensor.result() for key, tensor in self.tensors.items()},
            ops=self.ops,
            call_ends_ns=np.sort(np.array(self.call_ends_ns, dtype=np.int64)),
            notes=tuple(self.notes),
        )


def read_dump(run: Run) -> DebugDump | None:
    """What the debugger wrote about a run; None if it wrote nothing."""
    if not run.dumps:
        return None
    notes: list[Note] = []
    mine = _of_one_program(run.dumps, notes)
    reader = _DumpReader(notes)
    for files in mine:
        reader.read_tensors(files)
    for files in mine:
        reader.read_ops(files)
    notes.extend(Note("info", text, mine[0].prefix) for text in _what_it_cannot_tell(reader))
    return reader.result(mine[0].start_unix_s)


def _of_one_program(dumps: Sequence[DumpFiles], notes: list[Note]) -> list[DumpFiles]:
    """The file sets of the program that dumped last: one for each of its hosts."""
    by_program: dict[str, list[DumpFiles]] = {}
    for files in sorted(dumps, key=lambda files: files.start_unix_s):
        # A set without its metadata is treated as a separate program.
        by_program.setdefault(_run_id(files, notes) or files.prefix, []).append(files)
    *others, last = by_program.values()
    if others:
        text = f"{len(others) + 1} programs dumped into one folder: the last dump is used."
        notes.append(Note("info", text, last[0].prefix))
    return last


def _run_id(files: DumpFiles, notes: list[Note]) -> str:
    ids: list[str] = []
    read_part(files, "metadata", lambda message: ids.append(run_id_of(message)), notes)
    return next(iter(ids), "")


def _health(mode: int, values: Float64s | None) -> _Health | None:
    """What a record says about its tensor; None if it does not say whether it is finite."""
    if values is None:
        return None
    name = MODES[mode] if mode < len(MODES) else ""
    if name == "CURT_HEALTH" and len(values) == 2:
        return _Health(bool(values[1]), bool(values[1]))  # one of the two, but not which one
    if name == "CONCISE_HEALTH" and len(values) == 5:
        return _Health(bool(values[4]), bool(values[2] or values[3]))
    if name == "FULL_HEALTH" and len(values) == 11:
        size, zeros = float(values[4]), float(values[9])
        # Otherwise it is damaged.
        zero_share = zeros / size if 0 <= zeros <= size and size else None
        return _Health(bool(values[7]), bool(values[5] or values[6]), zero_share)
    if name == "FULL_TENSOR" and len(values):
        nan, inf = bool(np.isnan(values).any()), bool(np.isinf(values).any())
        return _Health(nan, inf, float(np.mean(values == 0)))
    return None


def _what_it_cannot_tell(reader: _DumpReader) -> Iterator[str]:
    if not reader.executions and not reader.traces:
        yield (
            "The debugger's dump contains no executions: they are written when the program ends "
            "or calls FlushExecutionFiles()."
        )
    elif not reader.looked_at:
        yield (
            f"The debugger's dump was made with {reader.mode_name}, which does not show whether "
            'tensors are finite; tensor_debug_mode="FULL_HEALTH" does.'
        )
    if len(reader.tensors) >= MOST_TENSORS:
        yield f"The debugger's dump has more than {MOST_TENSORS:,} tensors; the rest are left out."
    if DEFAULT_BUFFER in (reader.executions, reader.traces):
        yield (
            f"The debugger's dump contains only the last {DEFAULT_BUFFER:,} records of each kind, "
            f"as many as its buffer holds; circular_buffer_size=-1 keeps all of them."
        )
