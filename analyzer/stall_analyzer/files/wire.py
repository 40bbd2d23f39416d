"""Protobuf's wire format, just enough to look into a message without parsing it, and to write one.

The protobuf library parses whole messages; traces and the large records of event files are hundreds
of megabytes, and we need only a few fields, so we walk the bytes and skip the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

from stall_analyzer.errors import WireError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Buffer: TypeAlias = "bytes | bytearray | memoryview"
# field number, wire type, start, end: for VARINT `start` holds the value itself.
Field: TypeAlias = tuple[int, int, int, int]


def varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """The unsigned integer at `position` and the position after it."""
    if position < end and (byte := buffer[position]) < 0x80:  # as most are
        return byte, position + 1
    value = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise WireError("a number is longer than ten bytes")
    raise WireError("the data ends inside a number")


def signed(value: int) -> int:
    """An int64 as protobuf writes it: two's complement in an unsigned varint."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(buffer: Buffer, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in buffer[start:end], none of them parsed."""
    position = start
    while position < end:
        key = buffer[position]
        if key < 0x80:  # the same, without a call
            position += 1
        else:
            key, position = varint(buffer, position, end)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise WireError("field number 0")
        if wire_type == VARINT:
            value, position = varint(buffer, position, end)
            yield number, wire_type, value, position
            continue
        if wire_type == BYTES and position < end and (length := buffer[position]) < 0x80:
            position += 1
        else:
            length, position = payload(buffer, wire_type, position, end)
        if length > end - position:
            raise WireError("a field is longer than its message")
        yield number, wire_type, position, position + length
        position += length


def payload(buffer: Buffer, wire_type: int, position: int, end: int) -> tuple[int, int]:
    """Length and position of what follows the key that ends at `position`; not for a VARINT."""
    if wire_type == BYTES:
        return varint(buffer, position, end)
    if wire_type == FIXED64:
        return 8, position
    if wire_type == FIXED32:
        return 4, position
    raise WireError(f"wire type {wire_type}")


def double(buffer: Buffer, start: int) -> float:
    return float(struct.unpack_from("<d", buffer, start)[0])


def text(buffer: Buffer, start: int, end: int) -> str:
    return bytes(buffer[start:end]).decode("utf-8", "replace")


def number_field(number: int, value: int) -> bytes:
    """A field with an integer; zero is the default and is not written."""
    return _varint_bytes(number << 3 | VARINT) + _varint_bytes(value) if value else b""


def bytes_field(number: int, payload: bytes) -> bytes:
    """A field with a text or a message."""
    return bytes_header(number, len(payload)) + payload


def bytes_header(number: int, size: int) -> bytes:
    """What comes before `size` bytes of text or message."""
    return _varint_bytes(number << 3 | BYTES) + _varint_bytes(size)


def _varint_bytes(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF  # a negative int64 as its two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
