"""Writes event files byte by byte: what TensorFlow writes, and what it never would."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from stall_analyzer.events.event_files import read_events
from stall_analyzer.files import tfrecord
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.runs import EventFile, Run
from tests.xspace import block, varint

START_S = 1_700_000_000.0
framed = tfrecord.framed

FLOAT, DOUBLE, INT32, STRING, INT64, BFLOAT16, HALF = 1, 2, 3, 7, 9, 14, 19


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    return block(field, b"".join(parts))


def event(*what: bytes, at_s: float = START_S, step: int = 0) -> bytes:
    return b"\x09" + struct.pack("<d", at_s) + number(2, step) + b"".join(what)


def file_version(at_s: float = START_S) -> bytes:
    return event(message(3, b"brain.Event:2"), at_s=at_s)


def graph(size: int, at_s: float = START_S) -> bytes:
    return event(message(4, bytes(size)), at_s=at_s)


def summary(*values: bytes, at_s: float = START_S, step: int = 0) -> bytes:
    return event(message(5, *(message(1, value) for value in values)), at_s=at_s, step=step)


def record(*values: bytes, at_s: float = START_S, step: int = 0) -> bytes:
    """A summary, as in a file."""
    return framed(summary(*values, at_s=at_s, step=step))


def simple(tag: str, value: float) -> bytes:
    """How TensorFlow 1 and the Keras of TensorFlow 2.1 write a scalar."""
    return message(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(dtype: int, *fields: bytes, dims: Iterable[int] = ()) -> bytes:
    return (
        number(1, dtype) + message(2, *(message(2, number(1, d)) for d in dims)) + b"".join(fields)
    )


def content(pattern: str, value: float) -> bytes:
    return message(4, struct.pack(pattern, value))


def tensor_value(tag: str, body: bytes, plugin: str | None = None) -> bytes:
    metadata = message(9, message(1, message(1, plugin.encode()))) if plugin else b""
    return message(1, tag.encode()) + message(8, body) + metadata


def scalar(tag: str, value: float, plugin: str | None = "scalars") -> bytes:
    return tensor_value(tag, tensor(FLOAT, content("<f", value)), plugin)


def histogram(tag: str, size: int) -> bytes:
    return tensor_value(tag, tensor(DOUBLE, message(4, bytes(size)), dims=(30, 3)), "histograms")


def buckets(tag: str, *rows: tuple[float, float, float]) -> bytes:
    """A histogram by its rows: both edges, and how many values lie between them."""
    content = message(4, *(struct.pack("<3d", *row) for row in rows))
    return tensor_value(tag, tensor(DOUBLE, content, dims=(len(rows), 3)), "histograms")


def model(json_text: str) -> bytes:
    return tensor_value(
        "keras", tensor(STRING, message(8, json_text.encode())), "graph_keras_model"
    )


def file_name(start_s: float = START_S, pid: int = 100, host: str = "box", n: int = 0) -> str:
    return f"events.out.tfevents.{int(start_s)}.{host}.{pid}.{n}.v2"


def read(folder: Path, *files: bytes, role: str = "train") -> EventLog:
    """What `read_events` makes of files with these bytes."""
    event_files = []
    for index, data in enumerate(files):
        path = folder / file_name(START_S + index)
        path.write_bytes(data)
        event_files.append(EventFile(str(path), role, len(data)))
    return read_events(Run(".", str(folder), (), tuple(event_files)))
