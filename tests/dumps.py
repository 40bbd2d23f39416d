"""Writes dumps of the debugger byte by byte, as TensorFlow 2.21 does."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stall_analyzer.discover.discover import discover
from stall_analyzer.model.debug_dump import DebugDump
from stall_analyzer.tfdbg.debug_dumps import MODES, read_dump
from tests.event_files import DOUBLE, FLOAT, framed, message, number, tensor
from tests.xspace import varint

START_S = 1_700_000_000
GRAPH = "graph-id"  # for graphs that need no other id


def health(mode: str, size: int = 8, inf: int = 0, nan: int = 0, zero: int = 0) -> list[float]:
    """What the debugger stores about a tensor in each of its modes."""
    values: dict[str, list[float]] = {
        "CURT_HEALTH": [1, float(bool(inf or nan))],
        "CONCISE_HEALTH": [1, size, 0, inf, nan],
        "FULL_HEALTH": [1, 0, 1, 2, size, 0, inf, nan, 0, zero, size - inf - nan - zero],
        "SHAPE": [1, 1, 2, size, 2, size // 2, 0, 0, 0, 0],
        "NO_TENSOR": [],
    }
    return values[mode]


@dataclass
class Dump:
    """Each record comes a millisecond after the one before."""

    mode: str = "FULL_HEALTH"
    run_id: str = "r1"
    host: str = "box"
    parts: dict[str, bytearray] = field(default_factory=dict)
    clock_s: float = float(START_S)

    def __post_init__(self) -> None:
        self._add("metadata", 3, message(1, b"2.21.0"), message(3, self.run_id.encode()))

    def source(self, path: str, *lines: str) -> Dump:
        texts = (message(3, line.encode()) for line in lines)
        return self._add("source_files", 4, message(1, path.encode()), *texts)

    def frame(self, name: str, source: int, line: int, function: str = "f") -> Dump:
        place = message(2, number(1, source), number(2, line), message(4, function.encode()))
        return self._add("stack_frames", 6, message(1, name.encode()), place)

    def op(
        self,
        kind: str,
        name: str,
        *inputs: str,
        frames: Sequence[str] = (),
        graph: str = GRAPH,
        graph_name: str = "train_step",
    ) -> Dump:
        """An op of a graph; an input is output 0 of its op unless it says otherwise."""
        named = [text if ":" in text else f"{text}:0" for text in inputs]
        return self._add(
            "graphs",
            7,
            message(1, kind.encode()),
            message(2, name.encode()),
            message(3, graph_name.encode()),
            message(4, graph.encode()),
            *(message(6, text.encode()) for text in named),
            message(8, *(message(2, frame.encode()) for frame in frames)),
        )

    def tensor(self, op: str, graph: str = GRAPH, **counts: int) -> Dump:
        """A record of an op's output 0; `counts` as `health` takes them."""
        return self._trace(op, graph, _doubles(health(self.mode, **counts)))

    def full_tensor(self, op: str, *values: float) -> Dump:
        content = message(4, struct.pack(f"<{len(values)}f", *values))
        return self._trace(op, GRAPH, tensor(FLOAT, content, dims=(len(values),)))

    def call(self) -> Dump:
        """The function of the graph returns."""
        return self.eager("__inference_train_step_7", graph=GRAPH)

    def eager(
        self,
        kind: str,
        inputs: Sequence[int] = (),
        outputs: Sequence[int] = (),
        frames: Sequence[str] = (),
        graph: str = "",
        **counts: int,
    ) -> Dump:
        """An eager execution; `counts` apply to each of its outputs."""
        values = _doubles(health(self.mode, **counts))
        return self._add(
            "execution",
            9,
            message(1, kind.encode()),
            message(3, graph.encode()),
            message(4, *map(varint, inputs)),
            message(5, *map(varint, outputs)),
            number(6, MODES.index(self.mode)),
            *(message(7, values) for _ in outputs),
            message(8, *(message(2, frame.encode()) for frame in frames)),
        )

    def write(self, folder: Path, start_s: int = START_S) -> Path:
        """Writes all the files of a dump, including those without a record."""
        folder.mkdir(parents=True, exist_ok=True)
        for part in (
            "metadata", "source_files", "stack_frames", "graphs", "execution",
            "graph_execution_traces",
        ):  # fmt: skip
            path = folder / f"tfdbg_events.{start_s:010}.{self.host}.{part}"
            path.write_bytes(bytes(self.parts.get(part, b"")))
        return folder

    def _trace(self, op: str, graph: str, value: bytes) -> Dump:
        return self._add(
            "graph_execution_traces",
            10,
            message(1, graph.encode()),
            message(2, op.encode()),
            number(4, MODES.index(self.mode)),
            message(5, value),
        )

    def _add(self, part: str, kind: int, *body: bytes) -> Dump:
        self.clock_s += 0.001
        event = b"\x09" + struct.pack("<d", self.clock_s) + message(kind, *body)
        self.parts.setdefault(part, bytearray()).extend(framed(event))
        return self


def read(folder: Path) -> DebugDump:
    """What is read from the only dump in a folder."""
    (run,) = discover([str(folder)]).runs
    dump = read_dump(run)
    assert dump is not None
    return dump


def _doubles(values: Sequence[float]) -> bytes:
    return tensor(DOUBLE, message(4, struct.pack(f"<{len(values)}d", *values)), dims=(len(values),))
