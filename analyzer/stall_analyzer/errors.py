"""Every error a user can see, and the exit code that `stall-analyze` gives it.

    StallError                  1
    ├── UsageError              2   the command line asks for something impossible
    ├── NothingFound            3   no run, session or event file under the paths given
    ├── UnreadableFile          4   a file could not be read at all (a partial report still comes)
    │   ├── Unreachable             its file system failed, perhaps only for now
    │   ├── ForeignFile             of another framework: recognized, not read (a note, not 4)
    │   └── WireError               its bytes are not what its name promises
    └── ClusterError            7   the Dask cluster cannot be used, or was lost

5 (a run is over a limit) and 6 (a run has become worse) are answers, not errors; see cli.

Only `cli.main` prints and exits; everything below raises or returns notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stall_analyzer.model.foreign import ForeignTrace


class StallError(Exception):
    exit_code = 1


class UsageError(StallError):
    exit_code = 2


class NothingFound(StallError):
    exit_code = 3


class UnreadableFile(StallError):
    exit_code = 4


class Unreachable(UnreadableFile):
    """The file may well be readable next time."""


class ForeignFile(UnreadableFile):
    """A trace of another framework, with what can be said about it."""

    def __init__(self, message: str, trace: ForeignTrace) -> None:
        super().__init__(message)
        self.trace = trace


class WireError(UnreadableFile):
    """Raised while walking protobuf bytes; the reader of the file turns it into a note."""


class ClusterError(StallError):
    exit_code = 7
