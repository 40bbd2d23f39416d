"""Writing a report into a file: checked before the work, and all or nothing after it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stall_analyzer.errors import UsageError


def check_file(path: Path) -> None:
    """Raises before minutes of work, not after."""
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a directory")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: permission denied")


def write_file(path: Path, pieces: Iterable[str | bytes], *, lasting: bool = True) -> None:
    """Readers of `path` never see half a report; if `lasting`, not even after a power failure. What
    can be made again need not wait for the disk."""
    target = path.resolve() if path.is_symlink() else path  # a link stays a link
    in_place = target.exists() and not target.is_file()  # a device or pipe cannot be replaced
    aside = f".{target.name}.{os.urandom(4).hex()}.partial"  # others may be writing the same file
    written = target if in_place else target.with_name(aside)
    is_done = in_place
    try:
        with written.open("wb") as stream:
            for piece in pieces:
                stream.write(piece if isinstance(piece, bytes) else piece.encode(errors="replace"))
            if lasting and not in_place:
                stream.flush()
                os.fsync(stream.fileno())
        if not in_place:
            written.replace(target)
            is_done = True
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if not is_done:
            written.unlink(missing_ok=True)
