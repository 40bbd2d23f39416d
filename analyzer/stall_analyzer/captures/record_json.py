"""Records of a capture as JSON and back.

Reading tolerates everything, because any value in a file may have any type: an invalid value is
replaced by the default of its field.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from stall_analyzer.captures.capture_records import (
    BooksRecord,
    CaptureRecord,
    EndRecord,
    Environment,
    MarkRecord,
    ModelRecord,
    NoteRecord,
    PreflightRecord,
    StacksRecord,
    WeightsRecord,
    WindowRecord,
)
from stall_analyzer.captures.look_records import DumpRecord, Look, WorkRecord

RECORDS: tuple[type[CaptureRecord], ...] = (
    Environment, ModelRecord, WeightsRecord, MarkRecord, BooksRecord, StacksRecord, WindowRecord,
    Look, DumpRecord, WorkRecord, PreflightRecord, NoteRecord, EndRecord,
)  # fmt: skip
KINDS = {record.kind: record for record in RECORDS}
LATEST_NS = 1 << 63  # what fits into int64 (the year 2262)
T = TypeVar("T")


def to_json(record: CaptureRecord, now_ns: int = 0) -> str:
    """`now_ns`: the time for a record that has none yet."""
    values = {
        name: value
        for name, value in vars(record).items()
        if name not in record.left_out or value != getattr(type(record), name)
    }
    values["ns"] = record.ns or now_ns
    return json.dumps({"kind": record.kind, **values}, default=_plain)


def _plain(value: object) -> object:
    return vars(value) if is_dataclass(value) else str(value)


def read_record(text: str) -> CaptureRecord | None:
    """None if it is not a record. If a record is not understood, only its time is known."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    time = from_json(CaptureRecord, values)
    if time is None or not isinstance(values.get("kind"), str) or not 0 < time.ns < LATEST_NS:
        return None
    return from_json(KINDS.get(values["kind"], CaptureRecord), values) or time


def from_json(kind: type[T], values: object) -> T | None:
    """A dataclass from a JSON object. None if a field without a default is missing or invalid."""
    if not isinstance(values, dict):
        return None
    hints: Mapping[str, Any] = _hints(kind)  # type: ignore[arg-type] # any class can be hashed
    read = {name: _read(hint, values.get(name)) for name, hint in hints.items()}
    try:
        return kind(**{name: value for name, value in read.items() if value is not None})
    except TypeError:
        return None


@functools.cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _read(hint: Any, value: object) -> Any:
    """None if the value is not of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if NoneType in arguments:
        return None if value is None else _read(arguments[0], value)
    if origin is tuple:
        items = value if isinstance(value, list) else ()
        return tuple(read for item in items if (read := _read(arguments[0], item)) is not None)
    if origin is Mapping:
        pairs = value.items() if isinstance(value, dict) else ()
        return {key: read for key, item in pairs if (read := _read(arguments[1], item)) is not None}
    if origin is Literal:
        return value if value in arguments else None
    if is_dataclass(hint):
        return from_json(hint, value)  # type: ignore[arg-type]
    if hint is float:
        return _number(value)
    return value if type(value) is hint else None  # not isinstance: True is not a number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None
