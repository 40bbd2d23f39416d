"""Event files: scalars, histograms, the stored model, captures, wall times; nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_reader import CaptureFile, read_captures
from stall_analyzer.captures.held_stacks import read_dump
from stall_analyzer.captures.record_json import to_json
from stall_analyzer.events.content_reader import read_content
from stall_analyzer.events.event_scalars import TagColumns
from stall_analyzer.events.file_content import FileContent
from stall_analyzer.events.fits import files_by_fit, told_apart
from stall_analyzer.events.histogram_sums import HistogramReader
from stall_analyzer.events.kept_content import keep_content, load_content
from stall_analyzer.events.wall_times import wall_ns_of
from stall_analyzer.files.guard import guarded
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import EventFile, Run
from stall_analyzer.progress import EVENT_FILE_WEIGHT, Reading, ignore_progress


class _Log:
    """What the files of a run add up to, one after the other."""

    def __init__(self) -> None:
        self.train: dict[str, list[TagColumns]] = {}
        self.validation: dict[str, list[TagColumns]] = {}
        self.captures: list[CaptureFile] = []
        self.histograms = HistogramReader()
        self.models: dict[bool, KerasConfig] = {}  # by whether a capture stored it
        self.first_wall_s = math.inf
        self.last_wall_s = 0.0
        self.version_wall_s: float | None = None
        self.opened_s = [math.inf, math.inf]  # training, validation
        self.profiled_batches: list[tuple[int, int]] = []
        self.graph_wall_s: float | None = None
        self.records = 0
        self.writers: set[bool] = set()  # for each file, whether TensorFlow wrote it
        self.notes: list[Note] = []

    def add(self, file: EventFile, content: FileContent, notes: Sequence[Note]) -> None:
        self.records += content.records
        self.histograms.add(content.histograms)
        self.version_wall_s = self.version_wall_s or content.version_wall_s
        validates = file.role == "validation"
        self.opened_s[validates] = min(self.opened_s[validates], content.opened_s)
        self.profiled_batches += content.profiled_batches
        self.graph_wall_s = self.graph_wall_s or content.graph_wall_s
        self.writers |= content.writers
        self.first_wall_s = min(self.first_wall_s, content.first_wall_s)
        self.last_wall_s = max(self.last_wall_s, content.last_wall_s)
        self._add_models(content)
        self.notes += notes
        self._add_scalars(file, content)

    def _add_models(self, content: FileContent) -> None:
        self.notes += [note for told, note in content.unread_models if told not in self.models]
        for is_captured, model in content.models.items():
            self.models.setdefault(is_captured, model.config)

    def _add_scalars(self, file: EventFile, content: FileContent) -> None:
        captured = {}
        columns = self.validation if file.role == "validation" else self.train
        for tag, of_tag in content.scalars.by_tag().items():
            self.first_wall_s = min(self.first_wall_s, float(of_tag.wall_s.min()))
            self.last_wall_s = max(self.last_wall_s, float(of_tag.wall_s.max()))
            if tag.startswith(Tag.ALL):
                captured[tag.removeprefix(Tag.ALL)] = [of_tag]
            else:
                columns.setdefault(tag, []).append(of_tag)
        texts = content.texts
        with guarded("Stacks that a capture wrote", self.notes, file.path):
            held = read_dump(file.path)
            if held is not None:
                texts = [*texts, to_json(held)]
        if texts or captured:
            self.captures.append(CaptureFile(file.path, texts, _series(captured)))


def read_events(run: Run, reading: Reading | None = None, kept_in: Path | None = None) -> EventLog:
    """The scalars of a run, merged over its files in order of time, and everything else in them.
    What was read of large files is kept in a folder, if one is given, so that the next look
    continues from there."""
    reading = reading or Reading(run, ignore_progress)
    groups = files_by_fit(run.event_files)
    return told_apart([_read_files(files, reading, kept_in) for files in groups])


def _read_files(files: Sequence[EventFile], reading: Reading, kept_in: Path | None) -> EventLog:
    log = _Log()
    for file in files:
        notes: list[Note] = []
        content = load_content(kept_in, file)
        known = content.so_far.position
        progress = reading.file("event files", file.size, EVENT_FILE_WEIGHT)
        with guarded("An event file", notes, file.path):
            read_content(file, content, progress, notes)
        if content.so_far.position > known and not any(note.level == "error" for note in notes):
            keep_content(kept_in, file, content, known)
        log.add(file, content, notes)
    captures = read_captures(log.captures, log.notes)
    version = log.version_wall_s
    training_s, validation_s = log.opened_s
    return EventLog(
        train=_series(log.train),
        validation=_series(log.validation),
        keras=log.models.get(False),
        captured_keras=log.models.get(True),
        first_wall_ns=_ns(log.first_wall_s if log.last_wall_s else version),
        last_wall_ns=_ns(log.last_wall_s or version),
        graph_wall_ns=_ns(log.graph_wall_s),
        records=log.records,
        notes=tuple(log.notes),
        histograms=log.histograms.sums,
        captures=captures,
        read_ns=time.time_ns(),
        profiled_batches=tuple(sorted(log.profiled_batches)),
        opened_ns=_ns(training_s if math.isfinite(training_s) else None),
        validation_opened_ns=_ns(validation_s if math.isfinite(validation_s) else None),
        foreign_writer=log.writers == {False},
    )


def _ns(wall_s: float | None) -> int | None:
    return None if wall_s is None else wall_ns_of(wall_s)


def _series(columns: Mapping[str, Sequence[TagColumns]]) -> dict[str, Series]:
    """Each tag from its columns, one for each file."""
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
