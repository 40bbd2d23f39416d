"""An event file of a capture while it grows: each look reads only what is new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from tensorboard.compat.proto.event_pb2 import Event

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_records import CaptureRecord
from stall_analyzer.captures.record_json import read_record
from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.events.tensors import parsed, text_of
from stall_analyzer.events.wall_times import wall_ns_of
from stall_analyzer.files import files
from stall_analyzer.files.tfrecord import RecordFile, is_intact

# A tag without "stall/", step, unix time in nanoseconds, value.
Scalar: TypeAlias = tuple[str, int, int, float]
New: TypeAlias = "CaptureRecord | Scalar"


class FollowedFile:
    """A record that is only partly written is read once it is complete."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._size = self._position = 0

    def read_new(self) -> tuple[list[New], bool]:
        """What is new, and whether the file was rewritten, so that this is everything."""
        try:
            size = files.info(self.path).size
            anew = size < self._position  # after a full disk, the writer removed what did not fit
            if anew:
                self._position = 0
            elif size == self._size:
                return [], False
            self._size = size
            return self._read(), anew
        except (UnreadableFile, OSError):  # it may be there again at the next look
            return [], False

    def _read(self) -> list[New]:
        found: list[New] = []
        with files.open_binary(self.path) as stream:
            records = RecordFile(stream, self._position)
            for record in records:
                whole = records.whole(record)
                if whole is not None and is_intact(whole):
                    found += _new_in(whole.data)
            self._position = records.position
        return found


def _new_in(data: bytes) -> Iterator[New]:
    try:
        event = parsed(Event, data)
        wall_ns = wall_ns_of(event.wall_time)
    except WireError:
        return
    for value in event.summary.value:
        if value.tag.startswith(Tag.RECORD):
            record = _record(value.tensor)
            if record is not None:
                yield record
        elif value.tag.startswith(Tag.ALL) and value.HasField("simple_value"):
            name = value.tag.removeprefix(Tag.ALL)
            yield name, int(event.step), wall_ns, float(value.simple_value)


def _record(tensor: Any) -> CaptureRecord | None:
    text = text_of(tensor)
    return None if text is None else read_record(text)
