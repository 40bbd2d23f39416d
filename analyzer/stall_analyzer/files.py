"""The one place that touches files: local paths directly, URLs (`gs://…`, `s3://…`) by fsspec.

fsspec is imported only for URLs, because importing it would slow down every local start. Whatever
goes wrong below comes out as UnreadableFile or as a `problem` text, so that callers can note it
and carry on with the other files.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from stall_analyzer.errors import UnreadableFile

LOCAL_BUFFER_BYTES = 1 << 20  # event files are read in small pieces from one end to the other


@dataclass(frozen=True)
class Folder:
    """One folder of a tree; `parts` lead to it from the root, () being the root itself."""

    path: str
    parts: tuple[str, ...]
    names: tuple[str, ...]  # of the files in it, sorted
    problem: str | None = None  # why it could not be listed in full


@dataclass(frozen=True)
class FileInfo:
    size: int
    modified_unix_s: float | None  # None where the file system does not say


def is_url(path: str) -> bool:
    return "://" in path


def join(folder: str, *names: str) -> str:
    if is_url(folder):
        return "/".join((folder.rstrip("/"), *names))
    return str(Path(folder, *names))


def split(path: str) -> tuple[str, str]:
    """The folder of a file, and its name there."""
    if is_url(path):
        folder, _, name = path.rpartition("/")
        return folder, name
    return str(Path(path).parent), Path(path).name


def absolute_parts(path: str) -> tuple[str, ...]:
    """The components of a path from its root on, links resolved; for a URL, those after `://`."""
    if is_url(path):
        return tuple(part for part in path.split("://", 1)[1].split("/") if part)
    try:
        return Path(path).resolve().parts
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that cannot be
        return Path(path).absolute().parts


def kind(path: str) -> str | None:
    """What lies at a path: "folder", "file" or None for nothing."""
    try:
        if is_url(path):
            filesystem, inner = _filesystem(path)
            is_folder, exists = filesystem.isdir(inner), filesystem.exists(inner)
        else:
            is_folder, exists = Path(path).is_dir(), Path(path).exists()
    except UnreadableFile:
        raise
    except Exception as error:  # each fsspec backend raises errors of its own
        raise UnreadableFile(_reason(error)) from error
    return "folder" if is_folder else "file" if exists else None


def info(path: str) -> FileInfo:
    """Size and time of a regular file. A pipe is refused: opening one would wait for ever."""
    if is_url(path):
        filesystem, inner = _filesystem(path)
        try:
            return FileInfo(int(filesystem.size(inner) or 0), None)
        except Exception as error:  # each fsspec backend raises errors of its own
            raise UnreadableFile(_reason(error)) from error
    try:
        status = Path(path).stat()
    except OSError as error:
        raise UnreadableFile(_reason(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile("is not a regular file")
    return FileInfo(status.st_size, status.st_mtime)


def open_binary(path: str) -> BinaryIO:
    """A seekable stream of the file's bytes."""
    if is_url(path):
        filesystem, inner = _filesystem(path)
        try:
            return cast(BinaryIO, filesystem.open(inner, "rb"))
        except Exception as error:  # each fsspec backend raises errors of its own
            raise UnreadableFile(_reason(error)) from error
    try:
        return Path(path).open("rb", buffering=LOCAL_BUFFER_BYTES)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from error


def walk(root: str) -> Iterator[Folder]:
    """Every folder from `root` down, each one once, whatever links point where."""
    return _walk_url(root) if is_url(root) else _walk_local(root)


def _walk_local(root: str) -> Iterator[Folder]:
    visited: set[tuple[int, int]] = set()
    real: deque[tuple[str, tuple[str, ...]]] = deque([(root, ())])
    # Links wait until all real folders are done, so that a run is named by its own folder and
    # not by a link such as `latest`.
    linked: deque[tuple[str, tuple[str, ...]]] = deque()
    while real or linked:
        path, parts = (real or linked).popleft()
        names: list[str] = []
        problem = None
        try:
            status = Path(path).stat()
            identity = (status.st_dev, status.st_ino)
            if identity in visited:
                continue
            visited.add(identity)
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        real.append((entry.path, (*parts, entry.name)))
                    elif entry.is_symlink() and _leads_to_folder(entry):
                        linked.append((entry.path, (*parts, entry.name)))
                    else:
                        names.append(entry.name)
        except FileNotFoundError:
            problem = None if parts else "does not exist"  # a live logdir may lose a folder
        except OSError as error:
            problem = _reason(error)
        yield Folder(path, parts, tuple(sorted(names)), problem)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _walk_url(root: str) -> Iterator[Folder]:
    filesystem, base = _filesystem(root)
    try:
        for inner, _, names in filesystem.walk(base):
            relative = inner[len(base) :].strip("/")
            path = join(root, relative) if relative else root
            parts = tuple(relative.split("/")) if relative else ()
            yield Folder(path, parts, tuple(sorted(name for name in names if name)))
    except Exception as error:  # each fsspec backend raises errors of its own
        yield Folder(root, (), (), _reason(error))


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec  # noqa: PLC0415 (see the module docstring)

    try:
        filesystem, inner = fsspec.core.url_to_fs(url)
    except Exception as error:  # unknown scheme, missing driver, no credentials …
        raise UnreadableFile(_reason(error)) from error
    return filesystem, str(inner).rstrip("/")


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, FileNotFoundError):
        return "does not exist any more"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
