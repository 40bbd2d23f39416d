"""What is taken from one event file. Nothing in it depends on other files, and all of it is plain
data, so it can be kept, and reading can continue where it stopped."""

from __future__ import annotations

import math
from dataclasses import field
from typing import NamedTuple

from stall_analyzer.events.event_scalars import EventScalars
from stall_analyzer.events.histogram_sums import HistogramReader
from stall_analyzer.files.tfrecord import ReadSoFar
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass


class StoredModel(NamedTuple):
    text: str
    wall_ns: int
    config: KerasConfig


@dataclass
class FileContent:
    so_far: ReadSoFar = field(default_factory=ReadSoFar)
    records: int = 0
    scalars: EventScalars = field(default_factory=EventScalars)
    histograms: HistogramReader = field(default_factory=HistogramReader)
    plugins: dict[str, str] = field(default_factory=dict)  # by tag, if its first record says so
    texts: list[str] = field(default_factory=list)  # from a capture
    # The first that could be read, by whether a capture stored it.
    models: dict[bool, StoredModel] = field(default_factory=dict)
    unread_models: list[tuple[bool, Note]] = field(default_factory=list)  # the ones before it
    first_wall_s: float = math.inf
    last_wall_s: float = 0.0
    opened_s: float = math.inf  # earliest and first record with the version of the format
    version_wall_s: float | None = None
    graph_wall_s: float | None = None
    profiled_batches: list[tuple[int, int]] = field(default_factory=list)
    writers: set[bool] = field(default_factory=set)  # whether TensorFlow wrote it
