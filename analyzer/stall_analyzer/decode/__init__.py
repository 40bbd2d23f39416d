"""Read one host's trace, whatever its format, into columns.

`read_trace` is the only public door. The hot loop is native (_xplane) where pip could build it;
otherwise, or with STALL_PURE_PYTHON=1, pure.py gives the same result more slowly.
"""

from __future__ import annotations

import dataclasses
import io
import os
import tempfile
from collections.abc import Callable
from typing import BinaryIO

from stall_analyzer.decode import xplane
from stall_analyzer.decode.columns import BytesRead, Core
from stall_analyzer.errors import UnreadableFile
from stall_analyzer.model import HostFile, Note, Trace

__all__ = ["backend", "read_trace"]

NATIVE, PURE = "native", "pure python"
INTERFACE = 2  # of the native decoder; an older build, left behind by an update, is not used
DOWNLOAD_BYTES = 1 << 20  # at once
SLOW = Note(
    "info",
    "The trace was read by the slow decoder. For the fast one, install a C compiler and then "
    "reinstall: pip install --force-reinstall --no-deps "
    "--no-binary tensorboard-plugin-stall tensorboard-plugin-stall",
)
_hints = [SLOW]  # not yet given: once per process is enough


def read_trace(
    host_file: HostFile,
    open_file: Callable[[str], BinaryIO] | None = None,
    progress: BytesRead = lambda _: None,
) -> Trace:
    """The trace in `host_file`; what was cut or damaged is told in its notes.

    Remote files come through `open_file` (fsspec's, say) and are copied to a temporary file first:
    one download in order is the fastest way to read them, and both decoders then need only know
    files. Leave it out for local files. `progress` hears how many bytes are read so far.

    Raises UnreadableFile when nothing in the file can be used.
    """
    try:
        with (open_file or _open_local)(host_file.path) as file:
            if host_file.format == "trace_json":
                from stall_analyzer.decode import trace_json  # noqa: PLC0415  seldom needed

                return trace_json.read(file, host_file, progress)
            core, notes = _core()
            if isinstance(file, io.BufferedReader | io.FileIO):
                trace = xplane.read(file.fileno(), host_file, core, progress)
            else:
                with tempfile.TemporaryFile() as copy:
                    _download(file, copy, progress)
                    trace = xplane.read(copy.fileno(), host_file, core)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFile(f"{host_file.path} cannot be read: {reason}") from error
    return dataclasses.replace(trace, notes=trace.notes + notes)


def backend() -> str:
    """Which decoder is in use: "native" or "pure python"."""
    return PURE if _native() is None else NATIVE


def _open_local(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)  # noqa: PTH123  closed by the caller


def _download(file: BinaryIO, copy: BinaryIO, progress: BytesRead) -> None:
    while piece := _next_piece(file):
        copy.write(piece)
        progress(copy.tell())
    copy.flush()


def _next_piece(file: BinaryIO) -> bytes:
    try:
        return file.read(DOWNLOAD_BYTES)
    except Exception as error:  # each remote file system raises errors of its own
        raise OSError(str(error) or type(error).__name__) from error


def _native() -> Core | None:
    if os.environ.get("STALL_PURE_PYTHON") == "1":
        return None
    try:
        from stall_analyzer.decode import _xplane  # noqa: PLC0415  absent without a compiler
    except ImportError:
        return None
    return _xplane.read_plane if getattr(_xplane, "INTERFACE", 1) == INTERFACE else None


def _core() -> tuple[Core, tuple[Note, ...]]:
    native = _native()
    if native is not None:
        return native, ()
    from stall_analyzer.decode import pure  # noqa: PLC0415  not needed otherwise

    notes = tuple(_hints)
    _hints.clear()
    return pure.read_plane, notes
