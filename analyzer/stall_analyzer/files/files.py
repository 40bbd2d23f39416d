"""The one place that touches files: local paths directly, URLs (`gs://…`, `s3://…`) by `remote`.

Whatever goes wrong below comes out as UnreadableFile or as a `problem` text, so that callers can
note it and carry on with the other files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from stall_analyzer.errors import Unreachable
from stall_analyzer.files import remote
from stall_analyzer.files.listing import FileInfo, Folder, reason


def is_url(path: str) -> bool:
    return "://" in path


def join(folder: str, *names: str) -> str:
    if is_url(folder):
        return "/".join((folder.rstrip("/"), *names))
    return os.path.join(folder, *names)  # noqa: PTH118  pathlib takes ten times as long


def tidied(path: str) -> str:
    """Without meaningless parts, such as a slash at the end."""
    return path if is_url(path) else str(Path(path))


def split(path: str) -> tuple[str, str]:
    """The folder of a file, and its name there."""
    if is_url(path):
        folder, _, name = path.rpartition("/")
        return folder, name
    return str(Path(path).parent), Path(path).name


def absolute_parts(path: str) -> tuple[str, ...]:
    """The components of a path from its root, with links resolved; for a URL, those after `://`."""
    if is_url(path):
        return tuple(part for part in path.split("://", 1)[1].split("/") if part)
    try:
        return Path(path).resolve().parts
    except (OSError, RuntimeError, ValueError):  # a loop of links, or an impossible name
        return Path(path).absolute().parts


def absolute(path: str) -> str:
    """A name that means the same file whatever the current folder is."""
    return path if is_url(path) or not path else os.path.abspath(path)  # noqa: PTH100  links stay links


def did_you_mean(path: str) -> str:
    """` (did you mean logs/run1?)`, for a path with a misspelled part; empty if nothing is similar,
    or for a URL."""
    if is_url(path) or not path:
        return ""
    try:
        missing = Path(absolute(path))
        while not missing.parent.is_dir():
            missing = missing.parent
        names = [entry.name for entry in missing.parent.iterdir()]
    except (OSError, ValueError):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415  rarely needed

    like = get_close_matches(missing.name, names, n=1)
    return f" (did you mean {missing.parent / like[0]}?)" if like else ""


def kind(path: str) -> str | None:
    """What is at a path: "folder", "file" or None for nothing."""
    if is_url(path):
        return remote.kind(path)
    try:
        is_folder, exists = Path(path).is_dir(), Path(path).exists()
    except (OSError, ValueError) as error:  # an impossible name
        raise Unreachable(reason(error)) from error
    return "folder" if is_folder else "file" if exists else None


def info(path: str) -> FileInfo:
    """Size and time of a regular file. A pipe is refused: opening one would wait forever."""
    if is_url(path):
        return remote.info(path)
    try:
        status = os.stat(path)  # noqa: PTH116  as for join
    except OSError as error:
        raise Unreachable(reason(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise Unreachable("it is not a regular file")
    return FileInfo(status.st_size, status.st_mtime, str(status.st_mtime_ns))


def open_binary(path: str, fetched: Callable[[int], None] = lambda _: None) -> BinaryIO:
    """A seekable stream of the file's bytes. If they must be fetched over a network first,
    `fetched` is told how many have arrived."""
    if is_url(path):
        return remote.open_binary(path, fetched)
    try:
        return _opened(path)
    except OSError as error:
        raise Unreachable(reason(error)) from error


def _opened(path: str) -> BinaryIO:
    """Opens without waiting: a pipe or a device is refused."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Unreachable("it is not a regular file")
    return os.fdopen(fd, "rb")


def read_head(path: str, count: int) -> bytes:
    """The first bytes, without fetching the rest of a remote file."""
    if is_url(path):
        return remote.read_head(path, count)
    try:
        with _opened(path) as stream:
            return stream.read(count)
    except OSError as error:
        raise Unreachable(reason(error)) from error


def read_part(path: str, start: int, count: int) -> bytes:
    """Some bytes of a file, without fetching the others."""
    if is_url(path):
        return remote.read_part(path, start, count)
    try:
        with _opened(path) as stream:
            stream.seek(start)
            return stream.read(count)
    except OSError as error:
        raise Unreachable(reason(error)) from error


def folder(path: str) -> Folder:
    """The files of one folder, without those in folders below it."""
    if is_url(path):
        return remote.folder(path)
    try:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if not entry.is_dir())
    except OSError as error:
        raise Unreachable(reason(error)) from error
    return Folder(path, (), tuple(names))


def walk(root: str) -> Iterator[Folder]:
    """Every folder from `root` down, each one once, wherever links point. Depth first: once a
    folder has been left, nothing more from below it follows, except through a link."""
    return remote.walk(root) if is_url(root) else _walk_local(root)


def _walk_local(root: str) -> Iterator[Folder]:
    visited: set[tuple[int, int]] = set()
    real: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    # Links wait until all real folders are done, so that a run is named by its own folder and
    # not by a link such as `latest`.
    linked: list[tuple[str, tuple[str, ...]]] = []
    while real or linked:
        path, parts = real.pop() if real else linked.pop(0)
        names: list[str] = []
        folders: list[tuple[str, tuple[str, ...]]] = []
        links: list[tuple[str, tuple[str, ...]]] = []
        problem = None
        try:
            status = os.stat(path)  # noqa: PTH116  as for join
            identity = (status.st_dev, status.st_ino)
            if identity in visited:
                continue
            visited.add(identity)
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((entry.path, (*parts, entry.name)))
                    elif entry.is_symlink() and _leads_to_folder(entry):
                        links.append((entry.path, (*parts, entry.name)))
                    else:
                        names.append(entry.name)
        except FileNotFoundError:
            problem = None if parts else "it does not exist"  # a live logdir may lose a folder
        except OSError as error:
            problem = reason(error)
        yield Folder(path, parts, tuple(sorted(names)), problem, has_links=bool(links))
        real.extend(sorted(folders, reverse=True))
        linked.extend(sorted(links))


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
