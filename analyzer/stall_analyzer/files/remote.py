"""Files behind URLs (`s3://…`, `gs://…`), via fsspec: listed in one go, read once, requested again
after a broken connection.

fsspec is imported only for a URL, because importing it would slow down every local start. Each of
its file systems raises its own errors; all of them become UnreadableFile.
"""

from __future__ import annotations

import hashlib
import io
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from stall_analyzer.errors import Unreachable
from stall_analyzer.files.listing import FileInfo, Folder, reason
from stall_analyzer.model.patterns import pattern

Answer = TypeVar("Answer")

# Requested in one go. Most files are smaller, so each of them is one request.
BLOCK_BYTES = 16 << 20
# Before trying again. Some drivers retry by themselves, but not all of them, and not for
# everything.
WAITS_S = (0.5, 2.0, 8.0)
# After that, if the store asks for fewer requests: it means minutes.
THROTTLED_WAITS_S = (30.0, 60.0)
THROTTLED = pattern(r"slow ?down|reduce your request rate|too many requests|rate limit", re.I)
EXPIRED = pattern(r"expired", re.I)
# Trying again would give the same answer.
LASTING = (
    FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError,
    ImportError, NotImplementedError, TypeError, ValueError,
)  # fmt: skip
# Which extra has to be installed for a kind of URL.
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
# File systems have no common names for these.
STAMPS = ("ETag", "etag", "generation")
TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")

# Creates the folder they are in.
_copies: ContextVar[Callable[[], Path] | None] = ContextVar("copies", default=None)


def kind(url: str) -> str | None:
    """What is there: "folder", "file" or None for nothing."""
    filesystem, inner = _filesystem(url)
    try:
        found = _patiently(lambda: filesystem.info(inner))
    except Unreachable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    return "folder" if found["type"] == "directory" else "file"


def info(url: str) -> FileInfo:
    filesystem, inner = _filesystem(url)
    return _file_info(_patiently(lambda: filesystem.info(inner)))


def read_head(url: str, count: int) -> bytes:
    filesystem, inner = _filesystem(url)
    size = min(count, _size(filesystem, inner))
    return _block(filesystem, inner, 0, size) if size else b""


def read_part(url: str, start: int, count: int) -> bytes:
    filesystem, inner = _filesystem(url)
    end = min(start + count, _size(filesystem, inner))
    return _block(filesystem, inner, start, end) if end > start else b""


def folder(url: str) -> Folder:
    """The files of one folder."""
    filesystem, base = _filesystem(url)
    found = _patiently(lambda: filesystem.ls(base, detail=True))
    listed = {
        str(about["name"]).rpartition("/")[2]: _file_info(about)
        for about in found
        if about.get("type") != "directory"
    }
    return Folder(url, (), tuple(sorted(listed)), listed=listed)


@contextmanager
def copies_kept() -> Iterator[None]:
    """Inside, a file that is opened a second time is not fetched again."""
    with ExitStack() as ending:

        @cache
        def folder() -> Path:
            made = tempfile.TemporaryDirectory(prefix="stall-")
            return Path(ending.enter_context(made))

        before = _copies.set(folder)
        try:
            yield
        finally:
            _copies.reset(before)


def open_binary(url: str, fetched: Callable[[int], None]) -> BinaryIO:
    """The file's bytes in a temporary file: the reader may go back and forth, and each byte still
    crosses the network only once."""
    folder = _copies.get()
    kept = folder() / hashlib.sha256(url.encode(errors="replace")).hexdigest() if folder else None
    if kept and kept.exists():
        return kept.open("rb")
    filesystem, inner = _filesystem(url)
    size = _size(filesystem, inner)
    # Closed together with the returned stream.
    copy = kept.open("w+b", buffering=0) if kept else tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    try:
        for start in range(0, size, BLOCK_BYTES):
            copy.write(_block(filesystem, inner, start, min(start + BLOCK_BYTES, size)))
            fetched(copy.tell())
        copy.seek(0)
    except BaseException:
        copy.close()
        if kept:
            kept.unlink()
        raise
    return io.BufferedReader(copy)


def walk(root: str) -> Iterator[Folder]:
    """Every folder that contains a file, parents before their children. One listing covers all of
    them: an object store has no folders, and listing each in turn would take hours."""
    filesystem, base = _filesystem(root)
    filesystem.invalidate_cache()  # TensorBoard runs for a long time, and must see new files
    try:
        found = _patiently(lambda: filesystem.find(base, detail=True))
    except Unreachable as error:
        yield Folder(root, (), (), str(error))
        return
    files = []
    for path, about in found.items():
        *parts, name = path[len(base) :].strip("/").split("/")
        if name and about.get("type") != "directory":
            files.append((tuple(parts), name, _file_info(about)))
    found.clear()
    filesystem.invalidate_cache()  # its copy of the listing is larger than ours
    files.sort(key=lambda file: file[:2])
    for parts, inside in groupby(files, key=lambda file: file[0]):
        listed = {name: about for _, name, about in inside}
        yield Folder("/".join((root.rstrip("/"), *parts)), parts, tuple(listed), listed=listed)


def _size(filesystem: Any, inner: str) -> int:
    return int(_patiently(lambda: filesystem.info(inner)).get("size") or 0)


def _block(filesystem: Any, inner: str, start: int, end: int) -> bytes:
    def ask() -> bytes:
        block = bytes(filesystem.cat_file(inner, start=start, end=end))
        if len(block) != end - start:
            raise ConnectionError(f"{len(block):,} of {end - start:,} bytes arrived")
        return block

    return _patiently(ask)


def _patiently(ask: Callable[[], Answer]) -> Answer:
    """Raises Unreachable if an error is permanent, or has lasted long enough."""
    tries = 0
    while True:
        try:
            return ask()
        except Exception as error:
            waits_s = WAITS_S + THROTTLED_WAITS_S if THROTTLED.search(str(error)) else WAITS_S
            if tries >= len(waits_s) or _is_lasting(error):
                raise Unreachable(_what_to_do(error)) from error
        # Many connections may have broken at once.
        time.sleep(waits_s[tries] * random.uniform(0.5, 1.5))
        tries += 1


def _what_to_do(error: Exception) -> str:
    text = str(error)
    if EXPIRED.search(text):
        return f"the credentials have expired ({text}): renew them and try again"
    if THROTTLED.search(text):
        return f"the store asks for fewer requests ({text}): use a lower --jobs, or try again later"
    return reason(error)


def _is_lasting(error: Exception) -> bool:
    # Missing credentials are not a connection error; each driver has its own name for them.
    return isinstance(error, LASTING) or "Credential" in type(error).__name__


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec  # noqa: PLC0415 (see the module docstring)

    scheme = url.partition("://")[0]
    try:
        filesystem, inner = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = EXTRAS.get(scheme)
        if extra is None:
            raise Unreachable(reason(error)) from error
        raise Unreachable(
            f"{scheme}:// needs more packages: pip install 'tensorboard-plugin-stall[{extra}]'"
        ) from error
    except Exception as error:  # unknown scheme, no credentials …
        raise Unreachable(reason(error)) from error
    return filesystem, str(inner).rstrip("/")


def _file_info(about: Mapping[str, Any]) -> FileInfo:
    modified_s = next(filter(None, (_unix_s(about.get(name)) for name in TIMES)), None)
    stamp = next((str(about[name]) for name in STAMPS if about.get(name)), "")
    if not stamp and modified_s is not None:
        stamp = str(modified_s)
    return FileInfo(int(about.get("size") or 0), modified_s, stamp)


def _unix_s(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int | float) else None
