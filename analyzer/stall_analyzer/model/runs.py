"""Runs as they are on disk: what `discover` finds."""

from __future__ import annotations

import os

from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass


@dataclass(frozen=True)
class HostFile:
    """One host's trace inside a session."""

    host: str
    path: str
    format: str  # "xplane" | "trace_json"
    size: int
    stamp: str = ""  # changes whenever the file does; empty if not known


@dataclass(frozen=True)
class ProfileSession:
    """One profile capture. `id` is the string that the Profile plugin shows."""

    id: str
    path: str
    hosts: tuple[HostFile, ...]
    exported_unix_s: int | None = None  # from its name, if the writer's time zone is known


@dataclass(frozen=True)
class EventFile:
    """An event file, of TensorBoard or of a capture."""

    path: str
    role: str  # "train" | "validation" | "run" (neither folder name)
    size: int
    task: str = ""  # the process's task, if it is a capture in a cluster
    stamp: str = ""
    parent: int | None = None  # pid of the process that started it, if it is a capture


@dataclass(frozen=True)
class DumpFiles:
    """One file set of the debugger (tfdbg2): `<prefix>.<part>` for each part that exists."""

    prefix: str
    parts: tuple[str, ...]  # "execution", "graphs" …
    start_unix_s: int
    size: int
    stamp: str = ""


@dataclass(frozen=True)
class ConsoleFile:
    """What a job may have written to its terminal."""

    path: str
    size: int
    stamp: str = ""
    written_unix_s: float | None = None  # when it was last written; None if not known
    is_own: bool = False  # it is in the run's folder, or its name says whose it is
    is_named: bool = False  # the user named it, so nothing is guessed


@dataclass(frozen=True)
class Run:
    """One training attempt: a run directory with its train/ and validation/ children.

    `attempt` counts restarts that wrote into the same directory, from 1.
    """

    name: str  # as TensorBoard names it, "." for the logdir itself
    path: str
    sessions: tuple[ProfileSession, ...]
    event_files: tuple[EventFile, ...]
    attempt: int = 1
    notes: tuple[Note, ...] = ()
    dumps: tuple[DumpFiles, ...] = ()
    consoles: tuple[ConsoleFile, ...] = ()
    changed_unix_s: float | None = None  # when its newest file changed; None if not known

    @property
    def folder(self) -> str:
        """The name of its folder or, for a profile session given by itself, of its run."""
        path = self.path if "://" in self.path else os.path.abspath(self.path)  # noqa: PTH100
        parts = [part for part in path.replace(os.sep, "/").split("/") if part]
        owner = parts[:-3] if parts[-3:-1] == ["plugins", "profile"] else parts
        return (owner or [path])[-1]

    @property
    def size(self) -> int:
        """How many bytes there are to read."""
        traces = sum(host.size for session in self.sessions for host in session.hosts)
        dumps = sum(dump.size for dump in self.dumps)
        return traces + dumps + sum(file.size for file in self.event_files)
