"""Lines of the user's that run as code that AutoGraph has made of them.

AutoGraph keeps a map from its lines to the user's with each function that it makes. That function
is a local of the frame that calls it. TensorFlow itself is not needed to look it up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType

from tb_stall_plugin.capture.process.current_frames import locals_of

GENERATED = "__autograph_generated_file"
CONVERTED = "converted_f"  # the local; its callers' frames may be a few frames out
FRAMES_UP = 8
MAP = "ag_source_map"
MOST_FILES = 1000  # remembered

Lines = Mapping[tuple[str, int], object]
_maps: dict[str, Lines] = {}  # by the file that AutoGraph wrote: asked for once, see locals_of


def users_line(stack: Sequence[FrameType], n: int) -> str | None:
    """Of the nth frame: `path:line function`, as the user wrote it. None where that cannot be
    told."""
    path = stack[n].f_code.co_filename
    if path not in _maps:
        if len(_maps) >= MOST_FILES:
            _maps.clear()
        _maps[path] = _map_held_by(stack[n + 1 : n + 1 + FRAMES_UP])
    return _looked_up(_maps[path], stack[n])


def _map_held_by(callers: Sequence[FrameType]) -> Lines:
    caller = next((each for each in callers if CONVERTED in each.f_code.co_varnames), None)
    converted = None if caller is None else locals_of(caller).get(CONVERTED)
    return getattr(converted, MAP, None) or {}


def _looked_up(lines: Lines, frame: FrameType) -> str | None:
    """The map knows statements; a line inside one belongs to the last that began before it."""
    path = frame.f_code.co_filename
    for number in range(frame.f_lineno, frame.f_code.co_firstlineno - 1, -1):
        origin = lines.get((path, number))
        if origin is not None:
            place = getattr(origin, "loc")  # noqa: B009 (a class of TensorFlow's)
            function = getattr(origin, "function_name", None) or frame.f_code.co_name
            return f"{place.filename}:{place.lineno} {function}"
    return None
