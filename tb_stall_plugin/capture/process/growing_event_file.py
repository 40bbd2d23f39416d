"""Event files that grow by whole records only, on a local disk or at a URL.

We write each record ourselves: TensorFlow's own writers are ops, which would appear in the trace
and can hang with the rest of the process.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from tensorboard.compat.proto import event_pb2, types_pb2

from stall_analyzer.files.tfrecord import framed

UPLOAD_PAUSE_S = 30.0  # an object store takes only whole files, and few versions of one per minute
# An object is sent again in full whenever it has grown; at this size, the next one begins.
MOST_REMOTE_BYTES = 4 << 20


class Scalars(NamedTuple):
    wall_ns: int
    step: int
    values: Mapping[str, float]


class Text(NamedTuple):
    wall_ns: int
    step: int
    tag: str
    text: str
    plugin: str = "text"


def encoded(entries: Iterable[Scalars | Text]) -> bytes:
    return b"".join(framed(_event(entry).SerializeToString()) for entry in entries)


def file_header() -> bytes:
    event = event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2")
    return framed(event.SerializeToString())


def _event(entry: Scalars | Text) -> event_pb2.Event:
    event = event_pb2.Event(wall_time=entry.wall_ns / 1e9, step=entry.step)
    values = event.summary.value
    if isinstance(entry, Scalars):
        for tag, number in entry.values.items():
            values.add(tag=tag, simple_value=number)
    else:  # as `tf.summary.text` writes it
        value = values.add(tag=entry.tag)
        value.metadata.plugin_data.plugin_name = entry.plugin
        value.tensor.dtype = types_pb2.DT_STRING
        value.tensor.tensor_shape.SetInParent()
        value.tensor.string_val.append(entry.text.encode("utf-8", "replace"))
    return event


# ---------------------------------------------------------------- places


class GrowingEventFile(Protocol):
    @property
    def is_full(self) -> bool:
        """Whether further records belong in a new file."""

    def append(self, data: bytes, urgent: bool) -> None:
        """If it raises, it has written nothing of `data` that a reader would see."""

    def last_word(self, data: bytes) -> Callable[[], object]:
        """Writes `data` when called, even if Python's modules have been taken down by then."""

    def close(self) -> None: ...


def open_event_file(folder: str, name: str) -> GrowingEventFile:
    if "://" in folder:
        return RemoteEventFile(f"{folder.rstrip('/')}/{name}")
    return LocalEventFile(Path(folder, name))


class LocalEventFile:
    def __init__(self, path: Path) -> None:
        self.is_full = False
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._size = os.fstat(self._descriptor).st_size

    def append(self, data: bytes, urgent: bool) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            # A full disk took only a part. Without that part, the file is sound and can grow later.
            try:
                os.ftruncate(self._descriptor, self._size)
            except OSError:
                self.is_full = True
            raise
        self._size += len(data)

    def last_word(self, data: bytes) -> Callable[[], object]:
        return functools.partial(os.write, self._descriptor, data)

    def close(self) -> None:
        os.close(self._descriptor)


class RemoteEventFile:
    """Kept in memory and sent as a whole: each upload replaces the one before."""

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415 (only URLs need it)

        self._system, self._path = fsspec.core.url_to_fs(url)
        self._data = bytearray()
        self._sent = 0
        self._send_at = 0.0

    @property
    def is_full(self) -> bool:
        return self._sent >= MOST_REMOTE_BYTES

    def append(self, data: bytes, urgent: bool) -> None:
        self._data += data
        if urgent or time.monotonic() >= self._send_at:
            try:
                self._send()
            except Exception:
                del self._data[-len(data) :]
                raise

    def last_word(self, data: bytes) -> Callable[[], object]:
        return functools.partial(self.append, data, True)

    def close(self) -> None:
        if len(self._data) > self._sent:
            self._send()

    def _send(self) -> None:
        self._send_at = time.monotonic() + UPLOAD_PAUSE_S
        self._system.pipe_file(self._path, bytes(self._data))
        self._sent = len(self._data)
