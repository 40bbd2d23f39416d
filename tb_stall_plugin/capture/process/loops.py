"""The loop that a line of Python is in, as its bytecode has it: `for` ends with its data, `while`
need not."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType

from stall_analyzer.captures.capture_records import Loop

REMEMBERED = 256  # functions


def loop_of(frame: FrameType) -> Loop | None:
    """The innermost one around what the frame is doing."""
    around = [
        (end - begin, loop)
        for begin, end, loop in _loops(frame.f_code)
        if begin <= frame.f_lasti <= end
    ]
    return min(around, key=lambda sized: sized[0])[1] if around else None


@lru_cache(REMEMBERED)
def _loops(code: CodeType) -> tuple[tuple[int, int, Loop], ...]:
    """Of each: where its instructions begin and end. A loop is what jumps backwards."""
    instructions = list(dis.get_instructions(code))
    ends: dict[int, int] = {}
    for each in instructions:
        if each.opcode in _JUMPS and each.argval <= each.offset:
            ends[each.argval] = max(ends.get(each.argval, 0), each.offset)
    lines = dict(_lines(code, instructions))
    found = []
    for begin, end in ends.items():
        body = [each for each in instructions if begin <= each.offset <= end]
        used = [lines[each.offset] for each in body]
        kind = "for" if body[0].opname in _ITERATES else "while"
        calls = any(each.opname.startswith(_CALLS) for each in body)
        found.append((begin, end, Loop(kind, min(used), max(used), calls)))
    return tuple(found)


def _lines(code: CodeType, instructions: list[dis.Instruction]) -> list[tuple[int, int]]:
    starts = [(start, line) for start, line in dis.findlinestarts(code) if line is not None]
    lines, now = [], code.co_firstlineno
    for each in instructions:
        while starts and starts[0][0] <= each.offset:
            now = starts.pop(0)[1]
        lines.append((each.offset, now))
    return lines


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ITERATES = ("FOR_ITER", "END_ASYNC_FOR", "SEND")
# Operators may be slow as well, of arrays say; but a call can wait, or do anything.
_CALLS = ("CALL", "PRECALL", "YIELD", "SEND", "GET_AWAITABLE", "IMPORT")
