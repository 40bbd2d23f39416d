"""Lines of the user's that run as code that AutoGraph has made of them.

AutoGraph keeps a map from its lines to the user's with each function that it makes. That function
is a local of the frame that calls it. TensorFlow itself is not needed to look it up.
"""

from __future__ import annotations

from types import FrameType

GENERATED = "__autograph_generated_file"
CONVERTED = "converted_f"  # the local; its callers' frames may be a few frames out
FRAMES_UP = 8
MAP = "ag_source_map"


def users_line(frame: FrameType) -> str | None:
    """`path:line function`, as the user wrote it. None where that cannot be told."""
    caller = frame.f_back
    for _ in range(FRAMES_UP):
        if caller is None:
            return None
        if CONVERTED in caller.f_code.co_varnames:
            lines = getattr(caller.f_locals.get(CONVERTED), MAP, None) or {}
            return _looked_up(lines, frame)
        caller = caller.f_back
    return None


def _looked_up(lines: dict[tuple[str, int], object], frame: FrameType) -> str | None:
    """The map knows statements; a line inside of one belongs to the last that began before it."""
    path = frame.f_code.co_filename
    for number in range(frame.f_lineno, frame.f_code.co_firstlineno - 1, -1):
        origin = lines.get((path, number))
        if origin is not None:
            place = getattr(origin, "loc")  # noqa: B009 (a class of TensorFlow's)
            function = getattr(origin, "function_name", None) or frame.f_code.co_name
            return f"{place.filename}:{place.lineno} {function}"
    return None
