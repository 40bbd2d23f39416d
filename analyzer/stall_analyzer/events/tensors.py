"""TensorProto, as far as summaries and dumps use it: one number, one text, an array of floats.

TensorProto 1 dtype  2 tensor_shape (2 dim)  4 tensor_content  and one repeated field per type
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from stall_analyzer.errors import WireError
from stall_analyzer.files import wire
from stall_analyzer.model.units import Float64s

DT_BFLOAT16 = 14
STRING_VAL = 8
TENSOR_CONTENT = 4


@dataclass(frozen=True)
class _Type:
    content: str  # how tensor_content packs an element, as struct writes it
    field: int  # of the repeated field that holds elements otherwise
    packed: str = ""  # how that field packs an element; empty for varints


_BITS16 = "<H"  # bfloat16: the upper half of a float32
_TYPES = {
    1: _Type("<f", 5, "<f"),
    2: _Type("<d", 6, "<d"),
    3: _Type("<i", 7),
    4: _Type("<B", 7),
    5: _Type("<h", 7),
    6: _Type("<b", 7),
    9: _Type("<q", 10),
    10: _Type("<?", 11),
    DT_BFLOAT16: _Type(_BITS16, 13),
    17: _Type("<H", 7),
    19: _Type("<e", 13),
    22: _Type("<I", 16),
    23: _Type("<Q", 17),
}
_FLOATS = frozenset({1, 2, DT_BFLOAT16, 19})
# What nearly all scalars begin with: float, no dimensions, four bytes of content. Looking for it
# saves walking three fields for each of what may be millions of scalars.
_USUAL = b"\x08\x01\x12\x00\x22\x04"


def scalar_of(data: bytes, start: int, end: int) -> float | None:
    """The value of a rank-0 numeric tensor; None for any other."""
    if end - start == len(_USUAL) + 4 and data.startswith(_USUAL, start):
        return float(struct.unpack_from("<f", data, start + len(_USUAL))[0])
    dtype = 0
    kept: dict[int, wire.Field] = {}
    for found in wire.fields(data, start, end):
        number, wire_type, at, to = found
        if number == 1 and wire_type == wire.VARINT:
            dtype = at
        elif number == 2 and wire_type == wire.BYTES:
            if any(inner in {2, 3} for inner, *_ in wire.fields(data, at, to)):
                return None  # it has dimensions, or an unknown number of them
        else:
            kept.setdefault(number, found)
    kind = _TYPES.get(dtype)
    if kind is None:
        return None
    if TENSOR_CONTENT in kept:
        _, _, at, to = kept[TENSOR_CONTENT]
        if to - at != struct.calcsize(kind.content):
            return None
        return _number(kind, struct.unpack_from(kind.content, data, at)[0])
    if kind.field in kept:
        return _first_element(kind, data, kept[kind.field])
    return 0.0  # protobuf leaves out what is zero


def _first_element(kind: _Type, data: bytes, found: wire.Field) -> float | None:
    """The element of a repeated field, packed or not."""
    _, wire_type, at, to = found
    if kind.packed:
        if to - at < struct.calcsize(kind.packed):
            return 0.0
        return float(struct.unpack_from(kind.packed, data, at)[0])
    if wire_type == wire.BYTES:
        at = wire.varint(data, at, to)[0] if to > at else 0
    elif wire_type != wire.VARINT:
        return None
    if kind.field == 13:  # half and bfloat16 are stored as their 16 bits
        return _number(kind, struct.unpack(kind.content, struct.pack("<H", at & 0xFFFF))[0])
    return float(at if kind.content in {"<I", "<Q"} else wire.signed(at))


def _number(kind: _Type, value: float) -> float:
    if kind.content == _BITS16 and kind.field == 13:
        return float(struct.unpack("<f", struct.pack("<I", int(value) << 16))[0])
    return float(value)


def floats_of(data: bytes, start: int, end: int) -> Float64s | None:
    """All elements of a tensor of floats, whatever its shape; None for any other type."""
    dtype = 0
    kept: dict[int, wire.Field] = {}
    for found in wire.fields(data, start, end):
        if found[0] == 1 and found[1] == wire.VARINT:
            dtype = found[2]
        elif found[1] == wire.BYTES:
            kept.setdefault(found[0], found)
    kind = _TYPES.get(dtype)
    if kind is None or dtype not in _FLOATS:
        return None
    if TENSOR_CONTENT in kept:
        _, _, at, to = kept[TENSOR_CONTENT]
        return _floats(kind.content, data[at:to])
    if kind.field not in kept:
        return np.empty(0)
    _, _, at, to = kept[kind.field]
    if kind.packed:
        return _floats(kind.packed, data[at:to])
    bits = bytearray()  # half and bfloat16: their 16 bits, as varints
    while at < to:
        value, at = wire.varint(data, at, to)
        bits += struct.pack("<H", value & 0xFFFF)
    return _floats(kind.content, bytes(bits))


def _floats(pattern: str, content: bytes) -> Float64s:
    if len(content) % struct.calcsize(pattern):
        raise WireError("a tensor ends inside an element")
    if pattern == _BITS16:
        upper = np.frombuffer(content, "<u2").astype("<u4") << 16
        return upper.view("<f4").astype(np.float64)
    return np.frombuffer(content, pattern).astype(np.float64)


def text_of(data: bytes, start: int, end: int) -> str | None:
    """The first element of a string tensor."""
    for number, wire_type, at, to in wire.fields(data, start, end):
        if number == STRING_VAL and wire_type == wire.BYTES:
            return wire.text(data, at, to)
    return None
