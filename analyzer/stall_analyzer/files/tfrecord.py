"""TFRecord framing: the envelope around every record of an event file or a debugger dump.

    uint64 length | uint32 masked crc32c of the length | data | uint32 masked crc32c of the data

The length's checksum is always verified: without it one damaged byte would send us to a random
place. The data's checksum is verified by whoever uses the data (`is_intact`), because summing
histograms that nobody reads would take longer than everything else.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import BinaryIO, NamedTuple

from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.files import files
from stall_analyzer.model.notes import Note

# A longer record is mostly a graph, an image or a histogram: its head tells.
HEAD_BYTES = 64 * 1024
# Nothing that we want is longer than this; it keeps a strange file from filling the memory.
MAX_RECORD_BYTES = 256 * 1024 * 1024

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_CASTAGNOLI = 0x82F63B78  # the polynomial, bits reversed


class Record(NamedTuple):
    offset: int  # of the record's envelope in the file
    length: int  # of the data
    data: bytes  # all of it, or its first HEAD_BYTES
    crc: int | None  # as stored behind the data; None when only the head was read

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.length


class RecordFile:
    """Iterates over the records of a stream; `damage` then says why it ended early, if it did."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.damage: str | None = None

    def __iter__(self) -> Iterator[Record]:
        stream = self._stream
        # The size now: a file that is being written may grow while we read, and the end that we
        # saw first is as good as any.
        size = stream.seek(0, io.SEEK_END)
        position = stream.seek(0)
        while position < size:
            if size - position < _HEADER.size:
                self.damage = "it ends inside a record's header"
                return
            header = stream.read(_HEADER.size)
            if len(header) < _HEADER.size:
                self.damage = "it became shorter while it was read"
                return
            length, length_crc = _HEADER.unpack(header)
            if length_crc != _length_crc(length):
                self.damage = f"the record at byte {position:,} is damaged"
                return
            end = position + _HEADER.size + length + _CRC.size
            if end > size:
                self.damage = "it ends inside a record"
                return
            if length <= HEAD_BYTES:
                data = stream.read(length + _CRC.size)
                if len(data) < length + _CRC.size:
                    self.damage = "it became shorter while it was read"
                    return
                crc = _CRC.unpack_from(data, length)[0]
                yield Record(position, length, data[:length], crc)
            else:
                yield Record(position, length, stream.read(HEAD_BYTES), None)
                stream.seek(end)  # `whole` may have moved the stream
            position = end

    def whole(self, record: Record) -> Record | None:
        """The record with all its data; None when it is too long or not there any more."""
        if record.is_whole:
            return record
        if record.length > MAX_RECORD_BYTES:
            return None
        self._stream.seek(record.offset + _HEADER.size)
        data = self._stream.read(record.length + _CRC.size)
        if len(data) < record.length + _CRC.size:
            return None
        crc = _CRC.unpack_from(data, record.length)[0]
        return record._replace(data=data[: record.length], crc=crc)


def read_records(
    path: str, what: str, take: Callable[[RecordFile, Record], None], notes: list[Note]
) -> None:
    """Give each record of a file to `take`; what cannot be read of it becomes notes.

    `what` is the kind of file in words, with its article. `take` raises on a damaged record.
    """
    damaged = 0
    begin = what[0].upper() + what[1:]
    try:
        with files.open_binary(path) as stream:
            records = RecordFile(stream)
            for record in records:
                damaged += not _is_taken(records, record, take)
    except UnreadableFile as error:
        notes.append(Note("error", f"{begin} could not be read: {error}.", path, may_pass=True))
        return
    except OSError as error:  # while reading: a network file system, a bad disk
        text = f"{begin} could be read only in part: {error.strerror or error}."
        notes.append(Note("error", text, path, may_pass=True))
        return
    if damaged:
        notes.append(Note("warning", f"Damaged records in {what} were skipped: {damaged}.", path))
    if records.damage is not None:
        text = f"{begin} was read only in part: {records.damage}. The records before that are used."
        notes.append(Note("warning", text, path))


def _is_taken(
    records: RecordFile, record: Record, take: Callable[[RecordFile, Record], None]
) -> bool:
    try:
        take(records, record)
    except (WireError, IndexError, struct.error):  # the latter two: it leaves a record's head
        return False
    return True


def is_intact(record: Record) -> bool:
    return record.crc == masked_crc32c(record.data)


def masked_crc32c(data: bytes) -> int:
    """CRC-32C, rotated and shifted as TFRecord stores it."""
    crc = 0xFFFF_FFFF
    table = _crc_table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFF_FFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFF_FFFF


@lru_cache(maxsize=1)
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_CASTAGNOLI if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


@lru_cache(maxsize=4096)  # summaries of one kind have one length
def _length_crc(length: int) -> int:
    return masked_crc32c(length.to_bytes(8, "little"))
