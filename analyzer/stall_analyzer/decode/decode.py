"""Read one host's trace, whatever its format, into columns.

`read_trace` is the only public function. The hot loop is native (_xplane) if pip could build it;
otherwise, or with STALL_PURE_PYTHON=1, pure.py gives the same result more slowly.
"""

from __future__ import annotations

import dataclasses
import os

from stall_analyzer.decode import xplane
from stall_analyzer.decode.event_columns import BytesRead, Core
from stall_analyzer.errors import Unreachable
from stall_analyzer.files import files
from stall_analyzer.files.listing import reason
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import HostFile
from stall_analyzer.model.trace import Trace

__all__ = ["backend", "read_trace"]

NATIVE, PURE = "native", "pure python"
# Version of the native decoder; an older build, left behind by an update, is not used.
INTERFACE = 2
SLOW = Note(
    "info",
    "The trace was read by the slow decoder. To get the fast one, install a C compiler and then "
    "reinstall (pip install --force-reinstall --no-deps "
    "--no-binary tensorboard-plugin-stall tensorboard-plugin-stall).",
)


def read_trace(
    host_file: HostFile, progress: BytesRead = lambda _: None, in_full: bool = False
) -> Trace:
    """The trace in `host_file`; its notes say what was cut off or damaged. `progress` is told how
    many bytes have been read so far. `in_full`: with a row for each event that a reader could look
    for, however short; an analysis needs only a few of them. Raises UnreadableFile when nothing in
    the file can be used.
    """
    try:
        with files.open_binary(host_file.path, progress) as file:
            if host_file.format == "trace_json":
                from stall_analyzer.decode import trace_json  # noqa: PLC0415  rarely needed

                return trace_json.read(file, host_file, progress)
            core, notes = _core()
            trace = xplane.read(file.fileno(), host_file, core, progress, in_full)
    except (Unreachable, OSError) as error:
        raise Unreachable(f"{host_file.path} cannot be read: {reason(error)}") from error
    return dataclasses.replace(trace, notes=trace.notes + notes)


def backend() -> str:
    """Which decoder is in use: "native" or "pure python"."""
    return PURE if _native() is None else NATIVE


def _native() -> Core | None:
    if os.environ.get("STALL_PURE_PYTHON") == "1":
        return None
    try:
        from stall_analyzer.decode import _xplane  # noqa: PLC0415  missing without a compiler
    except ImportError:
        return None
    return _xplane.read_plane if getattr(_xplane, "INTERFACE", 1) == INTERFACE else None


def _core() -> tuple[Core, tuple[Note, ...]]:
    native = _native()
    if native is not None:
        return native, ()
    from stall_analyzer.decode import pure  # noqa: PLC0415  not needed otherwise

    return pure.read_plane, (SLOW,)
