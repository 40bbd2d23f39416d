"""Event files: scalars, histograms, the stored model, captures, wall times; no more than these.

TensorBoard's protos parse a record, except two kinds that would cost too much. A long one, mostly
an image or a graph, is skipped when its head says so. A scalar in a layout that was parsed before
is matched byte by byte: that takes half the time, and a file may hold millions of them.
"""

from __future__ import annotations

import math
import re
import struct
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_reader import CaptureFile, read_captures
from stall_analyzer.captures.held_stacks import read_dump
from stall_analyzer.captures.record_json import to_json
from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.events.fits import files_by_fit, told_apart
from stall_analyzer.events.histogram_sums import HistogramReader
from stall_analyzer.events.keras_config import parse_keras_config
from stall_analyzer.events.tensors import parsed, scalar_of, text_of
from stall_analyzer.files import wire
from stall_analyzer.files.guard import guarded
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
RUN_METADATA_PLUGIN = "graph_run_metadata"
_PROFILED = re.compile(r"batch_(\d{1,9})")  # a tag of Keras' callback: the batch it profiled
TELL_EVERY = 1000  # records
TENSORFLOW_WRITER = "tensorflow."
LATEST_WALL_S = 2.0**63 / 1e9  # what fits into int64 nanoseconds (the year 2262)

# How tf.summary.scalar writes a record: wall_time, step, and one value with a tag and a tensor: a
# float of no dimensions, as four bytes of content. Behind it, often, the name of the plugin.
_USUAL = re.compile(
    rb"\x09(.{8})\x10([\x80-\xff]{0,4}[\0-\x7f])"
    rb"(\x2a.\x0a.\x0a..*?\x42\x0a\x08\x01\x12\x00\x22\x04)(.{4})(.*)",
    re.DOTALL,
)
_TAG = slice(6, -8)  # in the third group
_TIME, _VALUE = struct.Struct("<d"), struct.Struct("<f")


class _Column:
    """A tag in one file, while it is being read."""

    def __init__(self) -> None:
        self.step, self.wall_s, self.value = array("q"), array("d"), array("d")

    def add(self, step: int, wall_s: float, value: float) -> None:
        self.step.append(step)
        self.wall_s.append(wall_s)
        self.value.append(value)


class _Content:
    """What is taken from one file, while it is being read."""

    def __init__(self, file: EventFile) -> None:
        self.file = file
        self.columns: dict[str, _Column] = {}
        self.layouts: dict[tuple[bytes, bytes], _Column] = {}
        self.plugins: dict[str, str] = {}  # of a tag: often only its first record says
        self.texts: list[str] = []  # of a capture

    def take_usual(self, record: Record) -> bool:
        """Take a scalar whose layout is known; False for any other record."""
        match = _USUAL.fullmatch(record.data)
        if match is None:
            return False
        time_bytes, step_bytes, before, value, after = match.groups()
        column = self.layouts.get((before, after))
        (wall_s,) = _TIME.unpack(time_bytes)
        if column is None or not 0 < wall_s < LATEST_WALL_S or not is_intact(record):
            return False
        step = 0
        for byte in reversed(step_bytes):
            step = step << 7 | byte & 0x7F
        column.add(step, wall_s, _VALUE.unpack(value)[0])
        return True

    def learn_layout(self, data: bytes, tag: str) -> None:
        """The one value of a record was a scalar: is it written in the usual way?"""
        match = _USUAL.fullmatch(data)
        if match and match[3][_TAG] == tag.encode():
            self.layouts[match[3], match[5]] = self.columns[tag]


class _Reader:
    def __init__(self) -> None:
        self.train: dict[str, list[_Column]] = {}
        self.validation: dict[str, list[_Column]] = {}
        self.captures: list[CaptureFile] = []
        self.histograms = HistogramReader()
        self.models: dict[bool, KerasConfig] = {}  # by whether a capture stored it
        self.first_wall_s = math.inf
        self.last_wall_s = 0.0
        self.version_wall_s: float | None = None
        self.opened_s = [math.inf, math.inf]  # of training, of validation
        self.profiled_batches: list[tuple[int, int]] = []
        self.graph_wall_s: float | None = None
        self.records = 0
        self.writers: set[bool] = set()  # of the files: whether TensorFlow wrote them
        self.notes: list[Note] = []

    def read(self, file: EventFile, progress: Callable[[int], None]) -> None:
        content = _Content(file)

        def take(records: RecordFile, record: Record) -> None:
            self.records += 1
            if self.records % TELL_EVERY == 0:
                progress(record.offset)
            if record.crc is None:
                self._take_long(content, records, record)
            elif not content.take_usual(record):
                self._take_event(content, record)

        with guarded("An event file", self.notes, file.path):
            read_records(file.path, "an event file", take, self.notes)
        with guarded("Stacks that a capture wrote", self.notes, file.path):
            held = read_dump(file.path)
            if held is not None:
                content.texts.append(to_json(held))
        self._keep(content)

    def _keep(self, content: _Content) -> None:
        captured = {}
        columns = self.validation if content.file.role == "validation" else self.train
        for tag, column in content.columns.items():
            self._saw(min(column.wall_s))
            self._saw(max(column.wall_s))
            if tag.startswith(Tag.ALL):
                captured[tag.removeprefix(Tag.ALL)] = [column]
            else:
                columns.setdefault(tag, []).append(column)
        if content.texts or captured:
            series = _series(captured)
            self.captures.append(CaptureFile(content.file.path, content.texts, series))

    def _take_long(self, content: _Content, records: RecordFile, record: Record) -> None:
        """A record of which we have the head: its time, and all of it if it is worth reading."""
        wall_s = 0.0
        for number, wire_type, start, end in wire.fields(record.data, 0, record.length):
            if number == 1 and wire_type == wire.FIXED64:
                wall_s = wire.double(record.data, start)
            elif wire_type == wire.BYTES and end >= len(record.data):
                break
        self._saw(wall_s, holds_graph=number == 4)
        if number == 5 and _is_worth_reading(record, start, end):
            whole = records.whole(record)
            if whole is not None:
                self._take_event(content, whole)

    def _take_event(self, content: _Content, record: Record) -> None:
        """Take from one record what we need: its time, unchecked, and its values if sound."""
        event = parsed(Event, record.data)
        wall_s = event.wall_time
        if event.file_version:
            self.version_wall_s = self.version_wall_s or checked(wall_s)
            validates = content.file.role == "validation"
            self.opened_s[validates] = min(self.opened_s[validates], checked(wall_s))
            self.writers.add(_is_by_tensorflow(event))
            return  # its time is in whole seconds: too coarse to count as a first or last one
        self._saw(wall_s, event.HasField("graph_def"))
        values, found = event.summary.value, []
        for value in values:
            scalar = self._take_value(content, record, wall_s, value)
            if scalar is not None:
                found.append((value.tag, scalar))
        if found:
            _check(record)
        for tag, scalar in found:
            content.columns.setdefault(tag, _Column()).add(event.step, wall_s, scalar)
        if len(found) == len(values) == 1:
            content.learn_layout(record.data, found[0][0])

    def _take_value(
        self, content: _Content, record: Record, wall_s: float, value: Any
    ) -> float | None:
        """What one value is for; of a scalar, its number."""
        kind = value.WhichOneof("value")
        if kind != "tensor":
            return float(value.simple_value) if kind == "simple_value" else None
        tag, tensor = value.tag, value.tensor
        named = value.metadata.plugin_data.plugin_name
        plugin = content.plugins.setdefault(tag, named) if named else content.plugins.get(tag)
        if _is_model(tag, plugin):
            self._take_model(record, value, wall_s, content.file.path)
        elif plugin is not None and plugin.startswith(RUN_METADATA_PLUGIN):
            batch = _PROFILED.fullmatch(tag)
            if batch is not None:
                self.profiled_batches.append((int(batch[1]), wall_ns_of(wall_s)))
        elif plugin == HISTOGRAMS_PLUGIN:
            if content.file.role != "validation":
                self.histograms.take(tag, tensor)
        elif plugin == TEXT_PLUGIN and tag.startswith(Tag.RECORD):
            _check(record)
            content.texts.append(text_of(tensor) or "")
        elif plugin in {None, SCALARS_PLUGIN}:
            return scalar_of(tensor)
        return None

    def _take_model(self, record: Record, value: Any, wall_s: float, path: str) -> None:
        """The first model counts: it is the one of the first epoch."""
        text, is_captured = text_of(value.tensor), value.tag == Tag.KERAS_MODEL
        if is_captured in self.models or text is None:
            return
        _check(record)
        try:
            self.models[is_captured] = parse_keras_config(text, wall_ns_of(wall_s))
        except UnreadableFile as error:
            self.notes.append(Note("info", f"The model's settings are unknown: {error}.", path))

    def _saw(self, wall_s: float, holds_graph: bool = False) -> None:
        self.first_wall_s = min(self.first_wall_s, checked(wall_s))
        self.last_wall_s = max(self.last_wall_s, wall_s)
        if holds_graph and self.graph_wall_s is None:
            self.graph_wall_s = wall_s


def read_events(run: Run, reading: Reading | None = None) -> EventLog:
    """The scalars of a run, merged over its files in time order, and what else they tell."""
    reading = reading or Reading(run, ignore_progress)
    return told_apart([_read_files(files, reading) for files in files_by_fit(run.event_files)])


def _read_files(files: Sequence[EventFile], reading: Reading) -> EventLog:
    reader = _Reader()
    for file in files:
        reader.read(file, reading.file("event files", file.size, EVENT_FILE_WEIGHT))
    captures = read_captures(reader.captures, reader.notes)
    version = reader.version_wall_s
    training_s, validation_s = reader.opened_s
    return EventLog(
        train=_series(reader.train),
        validation=_series(reader.validation),
        keras=reader.models.get(False),
        captured_keras=reader.models.get(True),
        first_wall_ns=_ns(reader.first_wall_s if reader.last_wall_s else version),
        last_wall_ns=_ns(reader.last_wall_s or version),
        graph_wall_ns=_ns(reader.graph_wall_s),
        records=reader.records,
        notes=tuple(reader.notes),
        histograms=reader.histograms.sums,
        captures=captures,
        read_ns=time.time_ns(),
        profiled_batches=tuple(sorted(reader.profiled_batches)),
        opened_ns=_ns(training_s if math.isfinite(training_s) else None),
        validation_opened_ns=_ns(validation_s if math.isfinite(validation_s) else None),
        foreign_writer=reader.writers == {False},
    )


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
                return _is_model(tag, None) or tag.startswith(Tag.RECORD)
            break
    return False


def _is_model(tag: str, plugin: str | None) -> bool:
    return plugin == KERAS_PLUGIN or (plugin is None and tag.rpartition("/")[2] == KERAS_TAG)


def _is_by_tensorflow(first: Any) -> bool:
    """Whether the first record of a file is TensorFlow's: newer ones name their writer. The older
    ones of TensorFlow have a time in whole seconds; Python's writers, which PyTorch's SummaryWriter
    and tensorboardX use, never had."""
    writer = first.source_metadata.writer
    if writer:
        return bool(writer.startswith(TENSORFLOW_WRITER))
    return bool(first.wall_time % 1 == 0)


def _check(record: Record) -> None:
    if not is_intact(record):
        raise WireError("the checksum of a record does not match")


def checked(wall_s: float) -> float:
    if not 0 < wall_s < LATEST_WALL_S:  # NaN fails both; 0 is what a record without a time has
        raise WireError("a time that cannot be")
    return wall_s


def wall_ns_of(wall_s: float) -> int:
    seconds = int(checked(wall_s))  # apart, because the product of the whole would lose 256 ns
    return seconds * 10**9 + round((wall_s - seconds) * 1e9)


def _ns(wall_s: float | None) -> int | None:
    return None if wall_s is None else wall_ns_of(wall_s)


def _series(columns: Mapping[str, Sequence[_Column]]) -> dict[str, Series]:
    """Each tag by its columns, one for each file."""
    series = {}
    for tag, parts in columns.items():
        step = np.concatenate([part.step for part in parts])
        wall_s = np.concatenate([part.wall_s for part in parts])
        value = np.concatenate([part.value for part in parts])
        seconds = wall_s.astype(np.int64)  # as in wall_ns_of
        wall_ns = seconds * 10**9 + np.rint((wall_s - seconds) * 1e9).astype(np.int64)
        if len(parts) > 1:
            order = np.argsort(wall_ns, kind="stable")
            step, wall_ns, value = step[order], wall_ns[order], value[order]
        series[tag] = Series(step, wall_ns, value)
    return series
