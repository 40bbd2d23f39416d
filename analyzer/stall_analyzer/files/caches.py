"""What is kept from one call to the next: where, and for which version of a run's files.

A run is the same as before exactly when `version_of` says so.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import stall_analyzer
from stall_analyzer.errors import UsageError
from stall_analyzer.files import files
from stall_analyzer.files.output import write_file
from stall_analyzer.model.runs import Run

# Several times the silence after which a run is considered dead, because the clocks of machines and
# file servers differ.
LIVE_S = 600.0
SOURCES = (".py", ".c", ".h")
_PACKAGE = os.path.dirname(stall_analyzer.__file__)  # noqa: PTH120  faster than Path


def cache_folder() -> Path:
    """Everything in it is ours and may be deleted. platformdirs knows where it is on each system;
    STALL_CACHE_DIR overrides that."""
    chosen = os.environ.get("STALL_CACHE_DIR")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path  # noqa: PLC0415  needed only to keep something

    return user_cache_path("tensorboard-plugin-stall")


def results_folder() -> Path:
    """If it cannot be written, a temporary folder is used as long as the process lives."""
    place = cache_folder() / "results"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return place
    except OSError:
        temporary = Path(tempfile.mkdtemp(prefix="stall-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary


def version_of(run: Run, live: bool | None = None) -> str:
    """Changes with everything that goes into the analysis of a run, and with the analyzer. `live`:
    whether the run is still going, if known better than from its files' times."""
    given = replace(run, changed_unix_s=None)  # each file's own stamp says more
    live = is_live(run) if live is None else live
    return digest(code_version(), files.absolute(run.path), repr(given), live)


def is_live(run: Run) -> bool:
    """Whether it may still be training, as far as the times of its files tell. What is said about
    such a run ("still running", "it was killed") changes even if its files do not."""
    return run.changed_unix_s is None or time.time() - run.changed_unix_s < LIVE_S


def shows_changes(run: Run) -> bool:
    """Whether a change to its files would change its version, which is not so on every file
    system."""
    stamps = [host.stamp for session in run.sessions for host in session.hosts]
    stamps += [file.stamp for file in run.event_files]
    stamps += [dump.stamp for dump in run.dumps]
    stamps += [console.stamp for console in run.consoles]
    return all(stamp.strip() for stamp in stamps)


def digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode(errors="replace")).hexdigest()[:32]


@cache
def code_version() -> str:
    """The version and a hash of the source, since a checkout changes without a new version. The
    same on every machine, so that many of them can share one store. Reading the source takes
    several times as long as looking at sizes and times, so the hash is kept with those.
    """
    state, kept = code_state(), cache_folder() / f"sources-{digest(_PACKAGE)}"
    try:
        known, version = kept.read_text().split("\n")
    except (OSError, ValueError):
        known = version = ""
    if known != state:
        version = _read_version(sorted(_sources()))
        with suppress(UsageError):  # if nothing can be kept
            write_file(kept, [f"{state}\n{version}"], lasting=False)
    return version


@cache
def code_state(*folders: str) -> str:
    """The state of the source in these folders, or of all. It also changes with the source, but
    differs between machines; in return, it is quicker to compute."""
    return digest(*sorted(f"{path} {size} {ns}" for path, (size, ns) in _sources(*folders).items()))


def _sources(*folders: str) -> dict[str, tuple[int, int]]:
    """Size and time of each source file."""
    found, waiting = {}, [f"{folder}/" for folder in folders] or [""]
    for inside in waiting:  # grows during the loop
        with os.scandir(f"{_PACKAGE}/{inside}") as entries:
            for entry in entries:
                if entry.name.endswith(SOURCES):
                    about = entry.stat()
                    found[inside + entry.name] = about.st_size, about.st_mtime_ns
                elif entry.name != "__pycache__" and entry.is_dir():
                    waiting.append(f"{inside}{entry.name}/")
    return found


def _read_version(paths: Sequence[str]) -> str:
    found = hashlib.sha256()
    for path in paths:
        with open(f"{_PACKAGE}/{path}", "rb") as source:  # noqa: PTH123
            found.update(path.encode() + b"\0" + source.read())
    return f"{stall_analyzer.__version__} {found.hexdigest()[:16]}"
