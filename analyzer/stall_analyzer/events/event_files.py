"""Event files: scalars, histograms, the stored model, captures, wall times; no more than these.

Event   1 wall_time (double)  2 step  3 file_version  4 graph_def  5 summary
Summary 1 value*: 1 tag  2 simple_value (float)  8 tensor  9 metadata.plugin_data.plugin_name
"""

from __future__ import annotations

import struct
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_reader import CaptureFile, read_captures
from stall_analyzer.captures.held_stacks import read_dump
from stall_analyzer.captures.record_json import to_json
from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.events.histogram_sums import HistogramReader
from stall_analyzer.events.keras_config import parse_keras_config
from stall_analyzer.events.tensors import scalar_of, text_of
from stall_analyzer.files import wire
from stall_analyzer.files.tfrecord import Record, RecordFile, is_intact, read_records
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import EventFile, Run
from stall_analyzer.progress import EVENT_FILE_WEIGHT, Reading, ignore_progress

SCALARS_PLUGIN = "scalars"
HISTOGRAMS_PLUGIN = "histograms"
KERAS_PLUGIN = "graph_keras_model"
KERAS_TAG = "keras"
TEXT_PLUGIN = "text"
CAPTURED, RECORDS = Tag.ALL, Tag.RECORD  # looked up for each of what may be millions of scalars
TELL_EVERY = 1000  # records
LATEST_WALL_S = 2.0**63 / 1e9  # what fits into int64 nanoseconds (the year 2262)


@dataclass
class _Column:
    """A tag while it is being read."""

    step: array[int] = field(default_factory=lambda: array("q"))
    wall_ns: array[int] = field(default_factory=lambda: array("q"))
    value: array[float] = field(default_factory=lambda: array("d"))
    files: set[str] = field(default_factory=set)


@dataclass
class _Captured:
    """What one file holds of a capture, while it is being read."""

    texts: list[str] = field(default_factory=list)
    columns: dict[str, _Column] = field(default_factory=dict)


@dataclass(slots=True)
class _Value:
    """One Summary.Value, looked into but not parsed: places are (start, end) in the record."""

    tag: str = ""
    simple_value: float | None = None
    tensor: tuple[int, int] | None = None
    plugin: str | None = None


class _Reader:
    def __init__(self) -> None:
        self.scalars: dict[str, dict[str, _Column]] = {"train": {}, "validation": {}}
        self.captures: list[CaptureFile] = []
        self.histograms = HistogramReader()
        self.keras: KerasConfig | None = None
        self.first_wall_ns: int | None = None
        self.last_wall_ns: int | None = None
        self.version_wall_ns: int | None = None
        self.graph_wall_ns: int | None = None
        self.records = 0
        self.notes: list[Note] = []

    def read(self, file: EventFile, progress: Callable[[int], None]) -> None:
        plugins: dict[str, str] = {}  # of a tag: often only its first record says
        captured = _Captured()

        def take(records: RecordFile, record: Record) -> None:
            self.records += 1
            if self.records % TELL_EVERY == 0:
                progress(record.offset)
            self._look_into(records, record, file, plugins, captured)

        read_records(file.path, "an event file", take, self.notes)
        held = read_dump(file.path)
        if held is not None:
            captured.texts.append(to_json(held))
        if captured.texts or captured.columns:
            series = _series(captured.columns)
            self.captures.append(CaptureFile(file.path, captured.texts, series))

    def _look_into(
        self,
        records: RecordFile,
        record: Record,
        file: EventFile,
        plugins: dict[str, str],
        captured: _Captured,
    ) -> None:
        """Take from one record what we need: its time, unchecked, and its values if sound."""
        wall_ns: int | None = None
        step = 0
        holds_graph = False
        summary: tuple[int, int] | None = None
        for number, wire_type, start, end in wire.fields(record.data, 0, record.length):
            if number == 1 and wire_type == wire.FIXED64:
                wall_ns = wall_ns_of(wire.double(record.data, start))
            elif number == 2 and wire_type == wire.VARINT:
                step = wire.signed(start)
            elif number == 3:
                self.version_wall_ns = self.version_wall_ns or wall_ns
                return  # its time is in whole seconds: too coarse to count as a first or last one
            elif number == 4 and wire_type == wire.BYTES:
                holds_graph = True
            elif number == 5 and wire_type == wire.BYTES:
                summary = start, end
            if wire_type != wire.VARINT and end >= len(record.data):
                break  # of a long record we have the head only
        if wall_ns is None:
            raise WireError("a record without a time")
        self._saw(wall_ns)
        if holds_graph and self.graph_wall_ns is None:
            self.graph_wall_ns = wall_ns
        if summary is None:
            return
        if not record.is_whole:
            whole = records.whole(record) if _is_worth_reading(record, *summary) else None
            if whole is None:
                return
            record = whole
        found: list[tuple[str, float]] = []
        texts: list[str] = []
        for value in _values(record.data, *summary):
            if value.plugin is not None:
                plugins.setdefault(value.tag, value.plugin)
            plugin = plugins.get(value.tag)
            if value.tensor is not None and _is_model(value.tag, plugin):
                self._model(record, value.tensor, wall_ns, file.path)
                continue
            if value.tensor is not None and plugin == HISTOGRAMS_PLUGIN:
                if file.role != "validation":
                    self.histograms.take(value.tag, record.data, *value.tensor)
                continue
            if plugin == TEXT_PLUGIN and value.tensor and value.tag.startswith(RECORDS):
                texts.append(text_of(record.data, *value.tensor) or "")
                continue
            scalar = _scalar(record.data, value, plugin)
            if scalar is not None:
                found.append((value.tag, scalar))
        if (found or texts) and not is_intact(record):
            raise WireError("the checksum of a record does not match")
        captured.texts += texts
        columns = self.scalars["validation" if file.role == "validation" else "train"]
        for tag, scalar in found:
            if tag.startswith(CAPTURED):
                column = captured.columns.setdefault(tag.removeprefix(CAPTURED), _Column())
            else:
                column = columns.setdefault(tag, _Column())
            column.step.append(step)
            column.wall_ns.append(wall_ns)
            column.value.append(scalar)
            column.files.add(file.path)

    def _model(self, record: Record, tensor: tuple[int, int], wall_ns: int, path: str) -> None:
        """The first model counts: it is the one of the first epoch."""
        if self.keras is not None:
            return
        if not is_intact(record):
            raise WireError("the checksum of a record does not match")
        text = text_of(record.data, *tensor)
        if text is None:
            return
        try:
            self.keras = parse_keras_config(text, wall_ns)
        except UnreadableFile as error:
            self._note("info", f"The model's settings are unknown: {error}.", path)

    def _saw(self, wall_ns: int) -> None:
        if self.first_wall_ns is None or wall_ns < self.first_wall_ns:
            self.first_wall_ns = wall_ns
        if self.last_wall_ns is None or wall_ns > self.last_wall_ns:
            self.last_wall_ns = wall_ns

    def _note(self, level: str, text: str, where: str) -> None:
        self.notes.append(Note(level, text, where))


def read_events(run: Run, reading: Reading | None = None) -> EventLog:
    """The scalars of a run, merged over its files in time order, and what else they tell."""
    reader = _Reader()
    reading = reading or Reading(run, ignore_progress)
    for file in run.event_files:
        reader.read(file, reading.file("event files", file.size, EVENT_FILE_WEIGHT))
    captures = read_captures(reader.captures, reader.notes)
    return EventLog(
        train=_series(reader.scalars["train"]),
        validation=_series(reader.scalars["validation"]),
        keras=reader.keras,
        first_wall_ns=_first_known(reader.first_wall_ns, reader.version_wall_ns),
        last_wall_ns=_first_known(reader.last_wall_ns, reader.version_wall_ns),
        graph_wall_ns=reader.graph_wall_ns,
        records=reader.records,
        notes=tuple(reader.notes),
        histograms=reader.histograms.result(),
        captures=captures,
        read_ns=time.time_ns(),
    )


def _values(data: bytes, start: int, end: int) -> list[_Value]:
    values = []
    for number, wire_type, value_start, value_end in wire.fields(data, start, end):
        if number != 1 or wire_type != wire.BYTES:
            continue
        value = _Value()
        for field_number, field_type, at, to in wire.fields(data, value_start, value_end):
            if field_number == 1 and field_type == wire.BYTES:
                value.tag = wire.text(data, at, to)
            elif field_number == 2 and field_type == wire.FIXED32:
                value.simple_value = struct.unpack_from("<f", data, at)[0]
            elif field_number == 8 and field_type == wire.BYTES:
                value.tensor = at, to
            elif field_number == 9 and field_type == wire.BYTES:
                value.plugin = _plugin_name(data[at:to])
        values.append(value)
    return values


@lru_cache(maxsize=1024)  # every record of a tag may repeat the same bytes
def _plugin_name(metadata: bytes) -> str | None:
    for number, wire_type, at, to in wire.fields(metadata, 0, len(metadata)):
        if number == 1 and wire_type == wire.BYTES:
            for inner, inner_type, name_at, name_to in wire.fields(metadata, at, to):
                if inner == 1 and inner_type == wire.BYTES:
                    return wire.text(metadata, name_at, name_to)
    return None


def _scalar(data: bytes, value: _Value, plugin: str | None) -> float | None:
    if value.simple_value is not None:
        return value.simple_value
    if value.tensor is None or plugin not in {None, SCALARS_PLUGIN}:
        return None
    return scalar_of(data, *value.tensor)


def _is_worth_reading(record: Record, start: int, end: int) -> bool:
    """Whether a long record, of which we have the head, may hold more than one big value.

    TensorFlow 1 merged scalars and images into one record; the stored model and the dumps of a
    capture may be long as well.
    """
    for number, wire_type, value_start, value_end in wire.fields(record.data, start, end):
        if number != 1 or wire_type != wire.BYTES or value_end < end:
            return True
        for field_number, _, at, to in wire.fields(record.data, value_start, value_end):
            if field_number == 1:
                tag = wire.text(record.data, at, to)
                return _is_model(tag, None) or tag.startswith(RECORDS)
            break
    return False


def _is_model(tag: str, plugin: str | None) -> bool:
    return plugin == KERAS_PLUGIN or (plugin is None and tag.rpartition("/")[2] == KERAS_TAG)


def wall_ns_of(wall_s: float) -> int:
    if not 0 <= wall_s < LATEST_WALL_S:  # NaN fails both
        raise WireError("a time that cannot be")
    seconds = int(wall_s)  # apart, because the product of the whole would lose 256 ns
    return seconds * 10**9 + round((wall_s - seconds) * 1e9)


def _series(columns: Mapping[str, _Column]) -> dict[str, Series]:
    series = {}
    for tag, column in columns.items():
        step = np.array(column.step, dtype=np.int64)
        wall_ns = np.array(column.wall_ns, dtype=np.int64)
        value = np.array(column.value, dtype=np.float64)
        if len(column.files) > 1:
            order = np.argsort(wall_ns, kind="stable")
            step, wall_ns, value = step[order], wall_ns[order], value[order]
        series[tag] = Series(step, wall_ns, value)
    return series


def _first_known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
