"""What damage does to files. Records are damaged inside their envelopes, and packed text before
it is packed: else a checksum would keep all of it from the code behind."""

from __future__ import annotations

import gzip
import random
import re
import struct
import zlib

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event

from stall_analyzer.files.tfrecord import framed

# Bytes at which formats break: ends of varints, lengths, keys.
NASTY = (0x00, 0x01, 0x07, 0x22, 0x7F, 0x80, 0xFF)
NUMBERS = (
    "0", "-1", "1e300", "-1e300", "NaN", "Infinity", "1e-320", "9223372036854775808", "4" * 400,
    "true", "null", '""', "[]", "{}", "[[[[[]]]]]", '"\\ud800"', '"x"', "5", "[1, 2]", '{"a": 1}',
)  # fmt: skip
DOUBLES = (0.0, -1.0, 1e300, -1e300, float("nan"), float("inf"), 9.3e9, 9.3e18, 1.7e9 + 107 * 86400)
_VALUE = re.compile(rb'(?<=[:\[,] )(?:-?[0-9.]+(?:e[+-]?\d+)?|"[^"]*"|true|false|null)')


def bytes_damaged(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data) or bytearray(1)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(damaged))
        kind = rng.randrange(7)
        if kind == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[at] = rng.choice(NASTY)
        elif kind == 2:
            damaged[at : at + rng.randint(1, 9)] = bytes([0xFF]) * rng.randint(1, 9)
        elif kind == 3:
            other, size = rng.randrange(len(damaged)), rng.randint(1, 64)
            damaged[at : at + size] = damaged[other : other + size]
        elif kind == 4:
            del damaged[at : at + rng.randint(1, 20)]
        elif kind == 5:
            damaged[at : at + 8] = struct.pack("<d", rng.choice(DOUBLES))
        else:
            damaged[at:at] = damaged[at : at + rng.randint(1, 200)]
        if not damaged:
            return b""
    return bytes(damaged[: rng.randrange(len(damaged))] if rng.random() < 0.1 else damaged)


def json_damaged(text: bytes, rng: random.Random) -> bytes:
    """Values of other types, and now and then bytes."""
    places = [match.span() for match in _VALUE.finditer(text)]
    if not places or rng.random() < 0.15:
        return bytes_damaged(text, rng)
    for begin, end in sorted(rng.sample(places, min(len(places), rng.randint(1, 3))), reverse=True):
        value = rng.choice(NUMBERS).encode()
        if rng.random() < 0.02:
            depth = rng.choice((50, 900, 5_000))
            value = b"[" * depth + b"]" * depth
        text = text[:begin] + value + text[end:]
    return text


def records_damaged(data: bytes, rng: random.Random) -> bytes:
    records = _records(data)
    if not records or rng.random() < 0.2:
        return bytes_damaged(data, rng)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(records))
        kind = rng.randrange(8)
        if kind == 0:
            del records[at]
        elif kind == 1:
            records.insert(at, records[rng.randrange(len(records))])
        elif kind == 2:
            rng.shuffle(records)
        elif kind == 3:
            records[at] = records[at][:1] + struct.pack("<d", rng.choice(DOUBLES)) + records[at][9:]
        elif b'{"kind"' in records[at] or b'"class_name"' in records[at]:
            records[at] = _text_inside(records[at], rng)
        else:
            records[at] = bytes_damaged(records[at], rng)
        if not records:
            return b""
    return b"".join(map(framed, records))


def _records(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        if size > len(data) - at - 16:
            break
        found.append(data[at + 12 : at + 12 + size])
        at += size + 16
    return found


def _text_inside(record: bytes, rng: random.Random) -> bytes:
    """JSON in a record: of a capture, or of a stored model."""
    try:
        event = Event.FromString(record)
    except DecodeError:
        return bytes_damaged(record, rng)
    for value in event.summary.value:
        texts = value.tensor.string_val
        texts[:] = [json_damaged(text, rng) for text in texts]
    return bytes(event.SerializeToString())


def damaged(path: str, data: bytes, rng: random.Random) -> bytes:
    """A file of any kind."""
    if "tfevents" in path or "tfdbg" in path:
        return records_damaged(data, rng)
    if path.endswith(".gz"):
        try:
            changed = json_damaged(gzip.decompress(data), rng)
        except (OSError, EOFError, zlib.error):
            return bytes_damaged(data, rng)
        if rng.random() < 0.1:
            return bytes_damaged(gzip.compress(changed, 1, mtime=0), rng)
        return gzip.compress(changed, 1, mtime=0)
    if path.endswith(".json"):
        return json_damaged(data, rng)
    return bytes_damaged(data, rng)
