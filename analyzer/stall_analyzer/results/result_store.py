"""Results on disk, so that a run is read again only when it has changed: `stall-analyze` and the
Stall tab share them.

A run has one file, `<key>.result`: a line with a checksum, the length of the rest and the short
facts about the run, as JSON, and then its entry in the document, compressed. Thousands of known
runs are listed by reading little more than those lines. What the tab draws is in a second file,
`<key>.charts`, ten times as large: only runs that someone has looked at have one.

A file is written elsewhere and then moved into place, which is all or nothing on every file system:
a process that is killed loses only the runs it was working on, and many processes and machines may
share one store. A newer result of a run replaces the older one. Nothing depends on the disk: what
is damaged there is dropped and made again, and what cannot be written is kept as long as the
process lives.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from stall_analyzer.errors import UnreadableFile, UsageError
from stall_analyzer.files import files
from stall_analyzer.files.caches import digest, is_live, shows_changes, version_of
from stall_analyzer.files.output import write_file
from stall_analyzer.model.runs import Run
from stall_analyzer.results.run_result import ResultHead, RunResult, unpack_entry

if TYPE_CHECKING:
    from stall_analyzer.chart.chart_columns import Chart

Content = TypeVar("Content")

DAY_S = 86_400.0
FORGOTTEN_AFTER_S = 90 * DAY_S
MOST_CHART_BYTES = 2 << 30
RESULT, CHARTS = ".result", ".charts"
DAMAGE = (OSError, ValueError, TypeError, KeyError, zlib.error)


class ResultStore:
    def __init__(self, folder: Path, lasting: bool = False) -> None:
        """`lasting`: results must survive even a power failure."""
        self.folder = folder
        self.problem = ""  # why results could not be written, if so
        self._lasting = lasting
        self._unwritten: dict[str, RunResult] = {}
        self._damaged: set[str] = set()  # in case they could not be deleted

    def key(self, run: Run) -> str:
        """The key of a run, which does not depend on what its files contain."""
        return digest(files.absolute(run.path), run.name, run.attempt)

    def known(self, run: Run, *, even_live: bool = False) -> ResultHead | None:
        """What is known about the run with its files as they are now; None if it must be read. A
        result about a live run may hold only for a moment, which may be good enough."""
        if not shows_changes(run):
            return None
        key = self.key(run)
        path = self._path(key, RESULT)
        if key in self._damaged:
            return None
        try:
            with path.open("rb") as stored:
                head = _head(stored)
        except DAMAGE:  # or missing, or in another format
            return None
        if not head.final or not _is_of(head, run, even_live):
            return None
        _mark_used(path)
        return head

    def put(self, run: Run, result: RunResult, charts: Sequence[Chart] | None = None) -> None:
        """If it cannot be written, it is kept in memory, and `problem` says why."""
        key, head = self.key(run), result.head
        try:
            if charts is not None:
                from stall_analyzer.chart import chart_files  # noqa: PLC0415  the tab needs them

                self._write(self._path(key, CHARTS), chart_files.pieces(charts, head.version))
            about = json.dumps(vars(head), allow_nan=False).encode()
            line = b"%08x %d %s\n" % (zlib.crc32(about), len(result.packed), about)
            self._write(self._path(key, RESULT), [line, result.packed], self._lasting)
        except UsageError as error:
            self.problem = str(error)
            self._unwritten[key] = replace(result, extra=None)
        else:
            self._unwritten.pop(key, None)
        self._damaged.discard(key)

    def made_anew(self, run: Run) -> None:
        """Another process has stored a new result."""
        self._damaged.discard(self.key(run))

    def check(self) -> None:
        """Before the work. Raises UsageError if nothing can be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(f"cannot write to the store {self.folder}: {error.strerror}")

    def has(self, key: str) -> bool:
        with suppress(OSError):
            return key not in self._damaged and self._path(key, RESULT).is_file()
        return False

    def head(self, key: str) -> ResultHead:
        unwritten = self._unwritten.get(key)
        return unwritten.head if unwritten else self._read(key, _head)

    def entry(self, key: str) -> str:
        """The run's entry in the document, as a line of JSON. Raises UnreadableFile if it is gone
        or damaged; then it is no longer known."""
        unwritten = self._unwritten.get(key)
        return unwritten.entry if unwritten else self._read(key, _entry)

    def has_charts(self, key: str, version: str) -> bool:
        """Whether there are charts of this version. Reads only how they begin."""
        from stall_analyzer.chart import chart_files  # noqa: PLC0415

        with suppress(OSError):
            return chart_files.is_of(self._path(key, CHARTS), version)
        return False

    def charts(self, key: str, version: str) -> list[Chart] | None:
        """None if there are none of this version, or they are damaged."""
        from stall_analyzer.chart import chart_files  # noqa: PLC0415

        path = self._path(key, CHARTS)
        try:
            charts = chart_files.load(path, version)
        except DAMAGE:
            with suppress(OSError):
                path.unlink()
            return None
        _mark_used(path)
        return charts

    def prune(self, most_chart_bytes: int = MOST_CHART_BYTES) -> None:
        """Delete what has not been used for months: its runs no longer exist. Keep the charts that
        were used last; they can be made again in the background."""
        oldest_s = time.time() - FORGOTTEN_AFTER_S
        charts: list[tuple[float, int, Path]] = []
        for path in self._files():
            with suppress(OSError):  # another process may be pruning, too
                status = path.stat()
                if status.st_mtime < oldest_s:
                    path.unlink()
                elif path.suffix != RESULT:
                    charts.append((status.st_mtime, status.st_size, path))
        total = 0
        for _, size, path in sorted(charts, reverse=True):
            total += size
            if total > most_chart_bytes and total > size:  # the last one used stays, even if huge
                with suppress(OSError):
                    path.unlink()

    def _read(self, key: str, read: Callable[[BinaryIO], Content]) -> Content:
        path = self._path(key, RESULT)
        try:
            with path.open("rb") as stored:
                return read(stored)
        except DAMAGE as error:  # someone deleted it, or the machine went down
            self._damaged.add(key)
            with suppress(OSError):
                path.unlink()
            raise UnreadableFile(
                f"a result in the store {self.folder} cannot be read ({error}): run the command "
                "again to replace it"
            ) from error

    def _write(self, path: Path, pieces: Iterable[bytes], lasting: bool = False) -> None:
        try:
            if not path.parent.is_dir():  # asking is faster than making it
                path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refusal(error) from error
        write_file(path, pieces, lasting=lasting)

    def _files(self) -> Iterator[Path]:
        return self.folder.glob("[0-9a-f][0-9a-f]/*")

    def _path(self, key: str, suffix: str) -> Path:
        # In 256 folders: some file systems are slow with very many files in one.
        return self.folder / key[:2] / f"{key}{suffix}"


def _is_of(head: ResultHead, run: Run, even_live: bool) -> bool:
    """Whether it was made from the run's files as they are now."""
    if head.timeless:
        return any(head.version == version_of(run, live) for live in (False, True))
    return head.version == version_of(run) and (even_live or not is_live(run))


def _head(stored: BinaryIO) -> ResultHead:
    line = stored.readline()
    checksum, size, about = line.rstrip(b"\n").split(b" ", 2)
    if int(checksum, 16) != zlib.crc32(about):
        raise ValueError("its checksum does not match")
    if os.fstat(stored.fileno()).st_size != len(line) + int(size):
        raise ValueError("it is cut off")
    return ResultHead(**json.loads(about))


def _entry(stored: BinaryIO) -> str:
    stored.readline()
    return unpack_entry(stored.read())


def _mark_used(path: Path) -> None:
    with suppress(OSError):  # a read-only store
        if time.time() - path.stat().st_mtime > DAY_S:
            os.utime(path)
