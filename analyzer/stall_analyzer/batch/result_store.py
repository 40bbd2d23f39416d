"""Results on disk, one file for each run, so that a run is read again only when it has changed.

A file is written aside and then put in its place, which is all or nothing on every file system: a
pass that is killed loses the runs it was working on and nothing else, and many processes and
machines may work into one store. A newer result of a run takes the place of the older.
"""

from __future__ import annotations

import os
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from stall_analyzer.batch.run_result import Head, unpack_entry, unpack_head
from stall_analyzer.errors import UnreadableFile, UsageError
from stall_analyzer.files import files
from stall_analyzer.files.caches import digest, shows_changes, version_of
from stall_analyzer.model.runs import Run

Content = TypeVar("Content")

DAY_S = 86_400.0
FORGOTTEN_AFTER_S = 90 * DAY_S
DAMAGE = (OSError, ValueError, TypeError, zlib.error)


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._partial = f"{socket.gethostname()}-{os.getpid()}.partial"

    def key(self, run: Run) -> str:
        """Of the run, whatever its files hold."""
        return digest(files.absolute(run.path), run.name, run.attempt)

    def known(self, run: Run) -> Head | None:
        """What is known about the run as its files are now; None where it must be read."""
        if not shows_changes(run):
            return None
        path = self._path(self.key(run))
        try:
            with path.open("rb") as packed:
                head = unpack_head(packed)
                used_s = os.fstat(packed.fileno()).st_mtime
            if time.time() - used_s > DAY_S:
                with suppress(OSError):  # a store that may only be read
                    os.utime(path)
        except DAMAGE:  # or absent, or of another format
            return None
        return head if head.final and head.version == version_of(run) else None

    def put(self, run: Run, packed: bytes) -> None:
        """Raises UsageError where nothing can be written: without a store there is no result."""
        path = self._path(self.key(run))
        written = path.with_name(f".{path.name}.{self._partial}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(packed)
            written.replace(path)
        except OSError as error:
            with suppress(OSError):
                written.unlink()
            raise UsageError(f"cannot write the store {self.folder}: {error.strerror}") from error

    def head(self, key: str) -> Head:
        return self._read(key, unpack_head)

    def entry(self, key: str) -> str:
        """The run's entry of the document, as a line of JSON."""
        return self._read(key, unpack_entry)

    def _read(self, key: str, unpack: Callable[[BinaryIO], Content]) -> Content:
        path = self._path(key)
        try:
            with path.open("rb") as packed:
                return unpack(packed)
        except DAMAGE as error:  # somebody deleted it, or the machine went down
            with suppress(OSError):
                path.unlink()
            raise UnreadableFile(
                f"a result in the store {self.folder} cannot be read ({error}): start again"
            ) from error

    def forget(self, unused_s: float = FORGOTTEN_AFTER_S) -> None:
        """Delete what no pass has asked for so long: runs that do not exist any more."""
        limit_s = time.time() - unused_s
        for path in self._files():
            with suppress(OSError):
                if path.stat().st_mtime < limit_s:
                    path.unlink()

    def _files(self) -> Iterator[Path]:
        return self.folder.glob("[0-9a-f][0-9a-f]/*")

    def _path(self, key: str) -> Path:
        # In 256 folders: some file systems are slow with very many files in one.
        return self.folder / key[:2] / f"{key}.result"
