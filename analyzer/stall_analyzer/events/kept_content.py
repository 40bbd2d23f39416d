"""What was read of a large, growing event file, kept on disk: the next look reads only the rest.

A file that was rewritten or truncated since then no longer has the same bytes at places spread over
the part that was read, so it is read from the beginning.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from stall_analyzer.errors import StallError
from stall_analyzer.events.event_scalars import EventScalars, TagColumns
from stall_analyzer.events.file_content import FileContent, StoredModel
from stall_analyzer.events.histogram_sums import HistogramReader
from stall_analyzer.events.keras_config import parse_keras_config
from stall_analyzer.files import files
from stall_analyzer.files.caches import code_state, digest
from stall_analyzer.files.output import write_file
from stall_analyzer.files.tfrecord import ReadSoFar
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import EventFile

SUFFIX = ".events"
MADE_BY = ("captures", "events", "files", "model")  # whose sources decide what is kept
WORTH_KEEPING_BYTES = 1 << 20  # a smaller file can be read as quickly as what would be kept
WORTH_ADDING_BYTES = 4 << 20  # reading less again is as quick as writing everything that is known
PLACES, PLACE_BYTES = 16, 4096  # in a file that are compared
PLAIN = (
    "records", "plugins", "texts", "first_wall_s", "last_wall_s", "opened_s", "version_wall_s",
    "graph_wall_s",
)  # fmt: skip
DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, StallError)


def load_content(folder: Path | None, file: EventFile) -> FileContent:
    """What is known about the file; nothing if it is no longer the same."""
    if folder is not None and _is_worth_keeping(file):
        with suppress(*DAMAGE), _path(folder, file).open("rb") as kept:
            crc, _, line = kept.readline().partition(b" ")
            columns = kept.read()
            about = json.loads(line)
            is_whole = int(crc, 16) == zlib.crc32(columns, zlib.crc32(line))
            if is_whole and about["code"] == code_state(*MADE_BY) and _is_same(file, about):
                return _content(about, columns)
    return FileContent()


def keep_content(folder: Path | None, file: EventFile, content: FileContent, known: int) -> None:
    """`known`: how much of the file is kept already, in bytes."""
    added = content.so_far.position - known
    if folder is None or not _is_worth_keeping(file) or (known and added < WORTH_ADDING_BYTES):
        return
    with suppress(*DAMAGE):
        path = _path(folder, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, _pieces(file, content), lasting=False)


def _is_worth_keeping(file: EventFile) -> bool:
    return file.size >= WORTH_KEEPING_BYTES and not files.is_url(file.path)


def _path(folder: Path, file: EventFile) -> Path:
    key = digest(files.absolute(file.path), file.role)
    return folder / key[:2] / f"{key}{SUFFIX}"


def _is_same(file: EventFile, about: dict[str, Any]) -> bool:
    position: int = about["position"]
    places: str = about["places"]
    if file.size < position:
        return False
    with files.open_binary(file.path) as stream:
        return _places(stream, position) == places


def _places(stream: BinaryIO, size: int) -> str:
    """Samples of the part of the file that was read."""
    found = hashlib.sha256()
    last = max(size - PLACE_BYTES, 0)
    for number in range(PLACES):
        stream.seek(last * number // (PLACES - 1))
        found.update(stream.read(min(PLACE_BYTES, size)))
    return found.hexdigest()


# ---------------------------------------------------------------- as plain data


def _pieces(file: EventFile, content: FileContent) -> Iterator[bytes]:
    series = content.scalars.by_tag()
    with files.open_binary(file.path) as stream:
        places = _places(stream, content.so_far.position)
    about = {name: getattr(content, name) for name in PLAIN} | vars(content.so_far)
    about |= {
        "code": code_state(*MADE_BY),
        "places": places,
        "histograms": content.histograms.plain(),
        "models": [[told, m.text, m.wall_ns] for told, m in content.models.items()],
        "unread_models": [[told, vars(note)] for told, note in content.unread_models],
        "batches": content.profiled_batches,
        "writers": sorted(content.writers),
        "tags": [[tag, len(columns.step)] for tag, columns in series.items()],
        "layouts": content.scalars.plain_layouts(),
    }
    line = json.dumps(about).encode() + b"\n"
    columns = [column for of_tag in series.values() for column in of_tag]
    crc = zlib.crc32(line)
    for column in columns:
        crc = zlib.crc32(column.data, crc)
    yield b"%08x %s" % (crc, line)
    yield from (column.tobytes() for column in columns)


def _content(about: dict[str, Any], columns: bytes) -> FileContent:
    series, at = {}, 0
    for tag, count in about["tags"]:
        step = np.frombuffer(columns, np.int64, count, at)
        wall_s, value = np.frombuffer(columns, np.float64, 2 * count, at + step.nbytes).reshape(
            2, -1
        )
        series[tag] = TagColumns(step, wall_s, value)
        at += 3 * step.nbytes
    return FileContent(
        so_far=ReadSoFar(about["position"], about["damaged"]),
        scalars=EventScalars(series, about["layouts"]),
        histograms=HistogramReader.of_plain(about["histograms"]),
        models={
            told: StoredModel(text, wall_ns, parse_keras_config(text, wall_ns))
            for told, text, wall_ns in about["models"]
        },
        unread_models=[(told, Note(**note)) for told, note in about["unread_models"]],
        profiled_batches=[(batch, ns) for batch, ns in about["batches"]],
        writers=set(about["writers"]),
        **{name: about[name] for name in PLAIN},
    )
