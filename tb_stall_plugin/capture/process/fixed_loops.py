"""Finds a while loop whose condition is recomputed in each iteration, always from the same values.

Such a loop does not end: a loss that is NaN is not below anything, a crop of an empty mask stays
empty. Flags, counters and whole numbers are not judged, because they may stay the same until the
loop ends; nor are values that only some iterations change. Used only on a process that hangs.
"""

from __future__ import annotations

import math
import re
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

from stall_analyzer.captures.look_records import FixedLoop
from stall_analyzer.captures.stack_frames import Frame
from tb_stall_plugin.capture.process.current_frames import variables_of, with_current_stacks
from tb_stall_plugin.capture.process.loop_conditions import conditions_of
from tb_stall_plugin.capture.process.loops import while_loops_around
from tb_stall_plugin.capture.process.thread_stacks import line_of

PEEK_S = 0.02
LEAST_ROUNDS = 20
MOST_LOOPS = 20
MOST_NUMBERS = 4096  # in an array
UNKNOWN = "?"
HASH = re.compile(r" #-?\w+")  # tells arrays apart
Key = tuple[int, int, int]  # the address of its function's frame, and its first and last line


class _Sight(NamedTuple):
    """One loop, as it is at one moment."""

    where: str
    last: int
    fresh: dict[str, Any]
    held: dict[str, Any]


@dataclass
class _Watched:
    fresh: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0
    values: set[str] = field(default_factory=set)

    def see(self, sight: _Sight) -> None:
        """A different object means another round: the last one is kept, so its address is taken."""
        self.rounds += any(value is not self.fresh.get(n) for n, value in sight.fresh.items())
        self.fresh = sight.fresh
        fresh = [f"{name} is {_in_words(value)}" for name, value in sight.fresh.items()]
        held = [f"{name} is {_plain(value)}" for name, value in sight.held.items()]
        self.values.add(" and ".join([*fresh, *held]))

    @property
    def is_fixed(self) -> bool:
        known = len(self.values) == 1 and UNKNOWN not in next(iter(self.values))
        return known and self.rounds >= LEAST_ROUNDS


def fixed_loop(seconds: float) -> FixedLoop | None:
    """The innermost such loop of any thread, after watching for that many seconds."""
    sights = with_current_stacks(_sights)
    watched = {key: _Watched() for key in sights}
    until_s = time.monotonic() + seconds
    while watched and time.monotonic() < until_s:
        for key in [key for key in watched if key not in sights]:
            del watched[key]  # the loop has ended
        for key, loop in watched.items():
            loop.see(sights[key])
        time.sleep(PEEK_S)
        sights = with_current_stacks(_sights)
    found = next(((key, loop) for key, loop in watched.items() if loop.is_fixed), None)
    if found is None or found[0] not in sights:
        return None
    (key, loop), sight = found, sights[found[0]]
    words = HASH.sub("", next(iter(loop.values)))
    return FixedLoop(sight.where, sight.last, loop.rounds, words)


def _sights(stacks: Mapping[int, list[FrameType]]) -> dict[Key, _Sight]:
    """The loops in the user's code: where each is, and what its condition is computed from."""
    found: dict[Key, _Sight] = {}
    for ident, stack in stacks.items():
        users = (f for f in stack if Frame(f.f_code.co_filename, 0, "").is_users)
        for frame in users if ident != threading.get_ident() else ():
            for loop in while_loops_around(frame):
                names = conditions_of(frame.f_code.co_filename, loop.line, loop.last)
                if names is not None and len(found) < MOST_LOOPS:
                    known = variables_of(frame, names.fresh | names.held)
                    found[id(frame), loop.line, loop.last] = _Sight(
                        line_of(frame.f_code, loop.line),
                        loop.last,
                        {name: known.get(name) for name in sorted(names.fresh)},
                        {name: known.get(name) for name in sorted(names.held)},
                    )
    return found


def _plain(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | str) else _in_words(value)


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    shape, numpy = getattr(value, "shape", None), sys.modules.get("numpy")
    if shape is None or numpy is None or math.prod(shape) > MOST_NUMBERS:
        return UNKNOWN
    numbers = numpy.asarray(value)
    if numbers.dtype.kind != "f" or not numbers.size:
        return UNKNOWN
    if numpy.isnan(numbers).all():
        return "NaN"
    if (numbers == numbers.flat[0]).all():
        return f"{numbers.flat[0]:g}"
    return f"the same array #{hash(numbers.tobytes()):x}"
