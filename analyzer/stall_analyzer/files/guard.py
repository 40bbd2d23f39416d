"""If one piece is bad, only that piece is lost, and a note says so; never the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stall_analyzer.errors import Unreachable, UnreadableFile
from stall_analyzer.files.listing import reason
from stall_analyzer.model.notes import Note


@contextmanager
def guarded(what: str, notes: list[Note], where: str = "") -> Iterator[None]:
    """Inside, any error with one piece becomes a note. `what` begins a sentence."""
    try:
        yield
    except Exception as error:
        notes.append(note_of(what, error, where))


def note_of(what: str, error: Exception, where: str = "") -> Note:
    """An error of a disk or of memory may not happen next time; one caused by the bytes will."""
    if isinstance(error, MemoryError):
        return Note("error", f"{what} could not be read: memory ran out.", where, may_pass=True)
    if isinstance(error, OSError | UnreadableFile):
        passing = isinstance(error, OSError | Unreachable)
        return Note("error", f"{what} could not be read: {reason(error)}.", where, passing)
    text = f"{what} could not be read: {type(error).__name__}: {error}. "
    return Note("error", text + "This is a bug in stall-analyze.", where)
