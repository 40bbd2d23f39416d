"""Creates log directories, and says in short what was found in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stall_analyzer.model.runs import Run

PROFILE = "plugins/profile"
NOON = 1_700_049_600  # 2023-11-15 12:00:00 UTC


def lay_out(root: Path, *names: str) -> str:
    """Creates files of one byte each; a name that ends with a slash is an empty folder."""
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    return str(root)


def write_session(root: Path, session: str = "s", /, **traces: bytes) -> None:
    """A profile session with the traces of these hosts."""
    folder = root / PROFILE / session
    folder.mkdir(parents=True, exist_ok=True)
    for host, trace in traces.items():
        (folder / f"{host}.xplane.pb").write_bytes(trace)


def names(runs: Iterable[Run]) -> list[str]:
    return [run.name for run in runs]


def session_ids(runs: Iterable[Run]) -> list[list[str]]:
    return [[session.id for session in run.sessions] for run in runs]


def texts(runs: Iterable[Run]) -> str:
    return " ".join(note.text for run in runs for note in run.notes)
