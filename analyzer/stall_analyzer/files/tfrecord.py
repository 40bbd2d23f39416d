"""TFRecord framing: the envelope around every record of an event file or a debugger dump.

    uint64 length | uint32 masked crc32c of the length | data | uint32 masked crc32c of the data

The length's checksum is always verified: without it one damaged byte would send us to a random
place. The data's checksum is verified only when the data is used (`is_intact`), because summing
histograms that nobody reads would take longer than everything else.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from typing import BinaryIO, NamedTuple, TypeAlias

from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.files import files
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass

# A longer record is usually a graph, an image or a histogram: its head says which.
HEAD_BYTES = 64 * 1024
# Nothing we need is longer than this; the limit keeps an odd file from filling the memory.
MAX_RECORD_BYTES = 256 * 1024 * 1024
# Read in one go, for what may be thousands of records; more than the head of one.
CHUNK_BYTES = 1024 * 1024
SHRANK = "it became shorter while it was being read"

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_CASTAGNOLI = 0x82F63B78  # the polynomial, bits reversed


class Record(NamedTuple):
    offset: int  # where the record's envelope is in the file
    length: int  # length of the data
    data: bytes  # all of it, or its first HEAD_BYTES
    crc: int | None  # as stored after the data; None if only the head was read

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.length


# Takes the records that it recognizes in a chunk of a file, and returns where they end. Given the
# chunk, where in it a record begins, and the chunk's own position in the file.
Skip: TypeAlias = Callable[[bytes, int, int], int]


@dataclass
class ReadSoFar:
    """How far a file was read."""

    position: int = 0  # after the last complete record
    damaged: int = 0  # records


class RecordFile:
    """Iterates over the records of a stream except those that `skip` takes; `damage` then says why
    it ended early, if it did, and `position` where: after the last complete record."""

    def __init__(self, stream: BinaryIO, position: int = 0, skip: Skip | None = None) -> None:
        self._stream = stream
        self._skip = skip
        self.position = position
        # By header: summaries of the same kind have the same length.
        self._lengths: dict[bytes, int] = {}
        self.damage: str | None = None
        self.is_foreign = False  # not even its first bytes are those of a record

    def __iter__(self) -> Iterator[Record]:
        # The size now: a file that is being written may grow while it is read, and the end that was
        # seen first is as good as any.
        size = self._stream.seek(0, io.SEEK_END)
        while (position := self.position) < size and self.damage is None:
            self._stream.seek(position)  # `whole` may have moved the stream
            chunk = self._stream.read(min(CHUNK_BYTES, size - position))
            self.position = yield from self._records_in(chunk, position, size)
            if self.position == position and self.damage is None:
                self.damage = _why_it_ends(len(chunk), size - position)

    def _records_in(self, chunk: bytes, position: int, size: int) -> Generator[Record, None, int]:
        """The records in a chunk of the file, only the heads of long ones; returns the position
        after them."""
        at = 0
        while True:
            if self._skip is not None and at < len(chunk):  # a long record may end after it
                at = self._skip(chunk, at, position)
            header = chunk[at : at + _HEADER.size]
            if len(header) < _HEADER.size:
                break
            length = self._lengths.get(header)
            if length is None:
                length = self._lengths[header] = _length_in(header)
            if length < 0:
                self.damage = f"the record at byte {position + at:,} is damaged"
                self.is_foreign = position + at == 0
                break
            begin = at + _HEADER.size
            end = begin + length
            if length <= HEAD_BYTES and end + _CRC.size <= len(chunk):
                (crc,) = _CRC.unpack_from(chunk, end)
                yield Record(position + at, length, chunk[begin:end], crc)
            elif begin + HEAD_BYTES <= min(end, len(chunk)) and position + end + _CRC.size <= size:
                yield Record(position + at, length, chunk[begin : begin + HEAD_BYTES], None)
            else:
                break
            at = end + _CRC.size
        return position + at

    def whole(self, record: Record) -> Record | None:
        """The record with all its data; None when it is too long or no longer there."""
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
    path: str,
    what: str,
    take: Callable[[RecordFile, Record], None],
    notes: list[Note],
    so_far: ReadSoFar | None = None,
    skip: Skip | None = None,
) -> None:
    """Pass each record of a file to `take`, except those that `skip` takes; what cannot be read
    becomes notes. Continues where `so_far` ends, and updates it.

    `what` is the kind of file in words, with its article. `take` raises on a damaged record.
    """
    begin = what[0].upper() + what[1:]
    so_far = so_far or ReadSoFar()
    try:
        with files.open_binary(path) as stream:
            records = RecordFile(stream, so_far.position, skip)
            damaged, fault = _take_all(records, take)
            so_far.damaged += damaged
            so_far.position = records.position
    except UnreadableFile as error:
        notes.append(Note("error", f"{begin} could not be read: {error}.", path, may_pass=True))
        return
    except OSError as error:  # while reading: a network file system, a bad disk
        text = f"{begin} could be read only in part: {error.strerror or error}."
        notes.append(Note("error", text, path, may_pass=True))
        return
    if fault:
        text = f"Records of {what} could not be read: {fault}. This is a bug in stall-analyze."
        notes.append(Note("error", text, path))
    if so_far.damaged:
        text = f"Damaged records in {what} were skipped: {so_far.damaged}."
        notes.append(Note("warning", text, path))
    if records.is_foreign:
        text = (
            f"{begin} could not be read: it does not begin with a record, so it is another kind "
            f"of file."
        )
        notes.append(Note("error", text, path))
    elif records.damage is not None:
        text = f"{begin} was read only in part: {records.damage}. The records before that are used."
        notes.append(Note("warning", text, path, may_pass=records.damage == SHRANK))


def _take_all(records: RecordFile, take: Callable[[RecordFile, Record], None]) -> tuple[int, str]:
    """Returns how many records were damaged, so that `take` raised (the last two errors when it
    reads beyond a record's head), and the first bug of ours: even that loses only its record."""
    damaged, fault = 0, ""
    remaining = iter(records)
    while True:
        try:
            for record in remaining:
                take(records, record)
            return damaged, fault
        except (WireError, IndexError, struct.error):  # noqa: PERF203 (for a damaged record only)
            damaged += 1
        except (OSError, MemoryError, UnreadableFile):
            raise
        except Exception as error:
            fault = fault or f"{type(error).__name__}: {error}"


def _length_in(header: bytes) -> int:
    """The length of a record; negative if its checksum does not match."""
    length, crc = _HEADER.unpack(header)
    return int(length) if crc == masked_crc32c(header[:8]) else -1


def _why_it_ends(got: int, left: int) -> str:
    if got < min(left, CHUNK_BYTES):
        return SHRANK
    return "it ends inside a record" + ("'s header" if left < _HEADER.size else "")


def framed(data: bytes) -> bytes:
    """The data as a record of a file."""
    header = len(data).to_bytes(8, "little")
    checksums = [_CRC.pack(masked_crc32c(part)) for part in (header, data)]
    return header + checksums[0] + data + checksums[1]


def is_intact(record: Record) -> bool:
    return record.crc == masked_crc32c(record.data)


def masked_crc32c(data: bytes) -> int:
    """CRC-32C, rotated and shifted as TFRecord stores it."""
    crc: int = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFF_FFFF


def crc32c_in_python(data: bytes) -> int:
    crc = 0xFFFF_FFFF
    table = _crc_table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFF_FFFF


@lru_cache(maxsize=1)
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_CASTAGNOLI if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


try:
    from google_crc32c import value as crc32c  # in C
except ImportError:  # the capture runs in the user's environment, whatever is installed there
    crc32c = crc32c_in_python
