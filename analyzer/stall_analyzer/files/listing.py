"""What a file system says about folders and files, the same for a disk and an object store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class FileInfo:
    """What a listing says about a file."""

    size: int
    modified_unix_s: float | None  # None if the file system does not say
    stamp: str = ""  # changes whenever the file does; empty if the file system cannot tell


@dataclass(frozen=True)
class Folder:
    """One folder of a tree; `parts` lead to it from the root, () being the root itself."""

    path: str
    parts: tuple[str, ...]
    names: tuple[str, ...]  # its files, sorted
    problem: str | None = None  # why it could not be listed in full
    has_links: bool = False  # to other folders, which come after all others
    # What the listing said besides the names.
    listed: Mapping[str, FileInfo] = field(default_factory=dict)


def reason(error: Exception) -> str:
    """Why a file could not be read, in words that can follow a colon."""
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, FileNotFoundError):
        return "it does not exist"  # gone since it was listed, or a link that leads nowhere
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
