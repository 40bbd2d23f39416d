"""How far a pool of processes has come for which the main thread waits."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import FrameType

from tb_stall_plugin.capture.process.current_frames import variables_of, with_current_stacks

POOL = "multiprocessing/pool.py"
LEFT, GIVEN = "_number_left", "_index"  # of the results of map() and the like, and of imap()
INNERMOST = 6


def tasks_left() -> int | None:
    """A number that falls with each finished task; None if it is not known, or there is no pool."""
    return with_current_stacks(_tasks_left)


def _tasks_left(stacks: Mapping[int, list[FrameType]]) -> int | None:
    for frame in stacks.get(threading.main_thread().ident or 0, [])[:INNERMOST]:
        if frame.f_code.co_filename.replace("\\", "/").endswith(POOL):
            result = variables_of(frame, ("self",)).get("self")
            left, given = getattr(result, LEFT, None), getattr(result, GIVEN, None)
            if isinstance(left, int):
                return left
            return -given if isinstance(given, int) else None
    return None
