"""One event file, record by record: scalars, histograms, the stored model, what a capture wrote and
wall times; nothing else.

TensorBoard's protos parse a record, except two kinds that would cost too much. A long one, usually
an image or a graph, is skipped if its head says so. A scalar in a layout that was parsed before is
read directly (`event_scalars`): a file may contain millions of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.errors import UnreadableFile, WireError
from stall_analyzer.events.file_content import FileContent, StoredModel
from stall_analyzer.events.keras_config import parse_keras_config
from stall_analyzer.events.tensors import parsed, scalar_of, text_of
from stall_analyzer.events.wall_times import checked, wall_ns_of
from stall_analyzer.files import wire
from stall_analyzer.files.tfrecord import Record, RecordFile, is_intact, read_records
from stall_analyzer.model.notes import Note
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.runs import EventFile

SCALARS_PLUGIN = "scalars"
HISTOGRAMS_PLUGIN = "histograms"
KERAS_PLUGIN = "graph_keras_model"
KERAS_TAG = "keras"
TEXT_PLUGIN = "text"
RUN_METADATA_PLUGIN = "graph_run_metadata"
_PROFILED = pattern(r"batch_(\d{1,9})")  # a tag of Keras's callback: the batch it profiled
TELL_EVERY = 1000  # records
TENSORFLOW_WRITER = "tensorflow."


def read_content(
    file: EventFile, content: FileContent, progress: Callable[[int], None], notes: list[Note]
) -> None:
    """Continue reading where `content` ends, and add to it. What cannot be read becomes notes."""
    reader = _Reader(file, content, progress)
    read_records(file.path, "an event file", reader.take, notes, content.so_far, reader.take_known)


class _Reader:
    def __init__(
        self, file: EventFile, content: FileContent, progress: Callable[[int], None]
    ) -> None:
        self._file = file
        self._found = content
        self._progress = progress

    def take_known(self, chunk: bytes, at: int, position: int) -> int:
        known = self._found.scalars.take_known(chunk, at)
        self._count(known.records, position + known.end)
        for wall_s in known.walls_s or ():
            self._saw(wall_s)
        if self._file.role != "validation":
            for tag, sums, last in known.histograms:
                self._found.histograms.go_on(tag, sums, last)
        return known.end

    def take(self, records: RecordFile, record: Record) -> None:
        self._count(1, record.offset)
        if record.crc is None:
            self._take_long(records, record)
        else:
            self._take_event(record)

    def _count(self, records: int, position: int) -> None:
        before = self._found.records
        self._found.records += records
        if before // TELL_EVERY != self._found.records // TELL_EVERY:
            self._progress(position)

    def _take_long(self, records: RecordFile, record: Record) -> None:
        """A long record: its time, from its head, and all of it if it is worth reading."""
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
                self._take_event(whole)

    def _take_event(self, record: Record) -> None:
        """Take what we need from one record: its time, unchecked, and its values if they are
        intact."""
        event = parsed(Event, record.data)
        wall_s = event.wall_time
        if event.file_version:
            self._take_version(event)
            return  # its time is in whole seconds: too coarse to be a first or last time
        self._saw(wall_s, event.HasField("graph_def"))
        values, found = event.summary.value, []
        for value in values:
            scalar = self._take_value(record, wall_s, value, is_alone=len(values) == 1)
            if scalar is not None:
                found.append((value.tag, scalar))
        if found:
            _check(record)
            layout = record.data if len(found) == len(values) else None
            self._found.scalars.take(found, event.step, wall_s, layout)

    def _take_version(self, first: Any) -> None:
        wall_s = checked(first.wall_time)
        self._found.version_wall_s = self._found.version_wall_s or wall_s
        self._found.opened_s = min(self._found.opened_s, wall_s)
        self._found.writers.add(_is_by_tensorflow(first))

    def _take_value(
        self, record: Record, wall_s: float, value: Any, is_alone: bool
    ) -> float | None:
        """Puts one value where its kind belongs. Returns the number if it is a scalar."""
        kind = value.WhichOneof("value")
        if kind != "tensor":
            return float(value.simple_value) if kind == "simple_value" else None
        tag, tensor, plugins = value.tag, value.tensor, self._found.plugins
        named = value.metadata.plugin_data.plugin_name
        plugin = plugins.setdefault(tag, named) if named else plugins.get(tag)
        if _is_model(tag, plugin):
            self._take_model(record, value, wall_s)
        elif plugin is not None and plugin.startswith(RUN_METADATA_PLUGIN):
            batch = _PROFILED.fullmatch(tag)
            if batch is not None:
                self._found.profiled_batches.append((int(batch[1]), wall_ns_of(wall_s)))
        elif plugin == HISTOGRAMS_PLUGIN:
            if self._file.role != "validation":
                self._found.histograms.take(tag, tensor)
            if is_alone and tensor.dtype == DT_DOUBLE:
                self._found.scalars.learn_histogram(tag, record.data)
        elif plugin == TEXT_PLUGIN and tag.startswith(Tag.RECORD):
            _check(record)
            self._found.texts.append(text_of(tensor) or "")
        elif plugin in {None, SCALARS_PLUGIN}:
            return scalar_of(tensor)
        return None

    def _take_model(self, record: Record, value: Any, wall_s: float) -> None:
        """The first model counts, since it belongs to the first epoch."""
        text, is_captured = text_of(value.tensor), value.tag == Tag.KERAS_MODEL
        if is_captured in self._found.models or text is None:
            return
        _check(record)
        wall_ns = wall_ns_of(wall_s)
        try:
            config = parse_keras_config(text, wall_ns)
        except UnreadableFile as error:
            note = Note("info", f"The model's settings are unknown: {error}.", self._file.path)
            self._found.unread_models.append((is_captured, note))
        else:
            self._found.models[is_captured] = StoredModel(text, wall_ns, config)

    def _saw(self, wall_s: float, holds_graph: bool = False) -> None:
        self._found.first_wall_s = min(self._found.first_wall_s, checked(wall_s))
        self._found.last_wall_s = max(self._found.last_wall_s, wall_s)
        if holds_graph and self._found.graph_wall_s is None:
            self._found.graph_wall_s = wall_s


def _is_worth_reading(record: Record, start: int, end: int) -> bool:
    """Whether a long record may contain more than one big value, judging by its head.
    TensorFlow 1 merged scalars and images into one record; the stored model and the dumps of a
    capture may also be long.
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
    """Whether TensorFlow wrote the first record of a file: newer records name their writer. Older
    ones from TensorFlow have a time in whole seconds; those of Python's writers, which PyTorch's
    SummaryWriter and tensorboardX use, never do."""
    writer = first.source_metadata.writer
    if writer:
        return bool(writer.startswith(TENSORFLOW_WRITER))
    return bool(first.wall_time % 1 == 0)


def _check(record: Record) -> None:
    if not is_intact(record):
        raise WireError("the checksum of a record does not match")
