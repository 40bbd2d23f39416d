"""The loop that a line of Python is in, as its bytecode has it: `for` ends with its data, `while`
need not."""

from __future__ import annotations

import dis
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, takewhile
from types import CodeType, FrameType

from stall_analyzer.captures.capture_records import Loop

REMEMBERED = 256  # functions


def loop_of(frame: FrameType) -> Loop | None:
    """The innermost one around what the frame is doing."""
    around = [
        (end - begin, jumps, loop)
        for begin, end, jumps, loop in _loops(frame.f_code)
        if begin <= frame.f_lasti <= end
    ]
    if not around:
        return None
    _, jumps, loop = min(around, key=lambda sized: sized[0])
    # Python lets other threads run where a loop jumps back (since 3.11), and where C gives way. If
    # a round took long, for its arrays say, it would be seen elsewhere.
    return replace(loop, is_empty=loop.is_empty and frame.f_lasti in jumps)


def loop_at(code: CodeType, line: int) -> Loop | None:
    """The innermost one around a line, of a frame of which no more is known."""
    loops = (loop for *_, loop in _loops(code) if loop.line <= line <= loop.last)
    return min(loops, key=lambda loop: loop.last - loop.line, default=None)


def names_in(code: CodeType, loop: Loop) -> frozenset[str]:
    """The variables of a loop, if it applies operators to any."""
    instructions = list(dis.get_instructions(code))
    lines = dict(_lines(code, instructions))
    body = [each for each in instructions if loop.line <= lines[each.offset] <= loop.last]
    if not any(each.opname.startswith(_OPERATORS) for each in body):
        return frozenset()
    loads = (each for each in body if each.opname.startswith(_LOADS))
    return frozenset(name for each in loads for name in _strings(each.argval))


def _strings(names: object) -> tuple[str, ...]:
    """An instruction of Python 3.13 may load two at once."""
    return names if isinstance(names, tuple) else (str(names),)


@lru_cache(REMEMBERED)
def _loops(code: CodeType) -> tuple[tuple[int, int, frozenset[int], Loop], ...]:
    """Of each: where its instructions begin and end, and where it jumps back."""
    instructions = list(dis.get_instructions(code))
    jumps: dict[int, set[int]] = {}
    for before, each in pairwise([instructions[0], *instructions]):
        if each.opcode in _JUMPS and each.argval <= each.offset:
            # Python makes one instruction of a comparison and the jump after it, if run often.
            places = (before, each) if before.opname == _COMPARES else (each,)
            jumps.setdefault(each.argval, set()).update(place.offset for place in places)
    lines = dict(_lines(code, instructions))
    found = []
    for begin, back in jumps.items():
        end = max(back)
        body = [each for each in instructions if begin <= each.offset <= end]
        used = [lines[each.offset] for each in body]
        kind = "for" if body[0].opname in _ITERATES else "while"
        is_empty = not any(each.opname.startswith(_CALLS) for each in body)
        has_no_end = kind == "while" and _has_no_end(code, body, lines)
        loop = Loop(kind, min(used), max(used), is_empty, has_no_end)
        found.append((begin, end, frozenset(back), loop))
    return tuple(found)


def _has_no_end(code: CodeType, body: list[dis.Instruction], lines: dict[int, int]) -> bool:
    """Whether nothing leads out of it: no `break`, `return` or handler of an error; and no
    condition, or one that compares variables which the loop does not change."""
    begin, end = body[0].offset, body[-1].offset
    jumps = [each for each in body if each.opcode in _JUMPS]
    if any(not begin <= each.argval <= end for each in jumps) or _is_guarded(code, begin, end):
        return False
    if any(each.opname.startswith(_LEAVES) for each in body):
        return False
    if "_IF_" not in body[-1].opname:
        return body[-1].opname.startswith("JUMP")
    line = lines[end]
    condition = list(takewhile(lambda each: lines[each.offset] == line, reversed(body[:-1])))
    changed = {each.argval for each in body if each.opname.startswith(("STORE", "DELETE"))}
    read = {each.argval for each in condition if each.opname == "LOAD_FAST"}
    compares = any(each.opname == _COMPARES for each in condition)
    is_plain = all(each.opname in _PLAIN for each in condition)
    return compares and is_plain and bool(read) and not read & changed


def _is_guarded(code: CodeType, begin: int, end: int) -> bool:
    """Whether an error in it is handled, which may be how it ends. Before Python 3.11 that is a
    jump."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return any(each.start <= end and begin < each.end for each in entries)


def _lines(code: CodeType, instructions: list[dis.Instruction]) -> list[tuple[int, int]]:
    starts = [(start, line) for start, line in dis.findlinestarts(code) if line is not None]
    lines, now = [], code.co_firstlineno
    for each in instructions:
        while starts and starts[0][0] <= each.offset:
            now = starts.pop(0)[1]
        lines.append((each.offset, now))
    return lines


_COMPARES = "COMPARE_OP"
_LEAVES = ("RETURN", "RAISE", "RERAISE", "YIELD", "SEND", "SETUP_")
_PLAIN = ("LOAD_FAST", "LOAD_CONST", _COMPARES, "CACHE", "EXTENDED_ARG", "NOP", "TO_BOOL")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ITERATES = ("FOR_ITER", "END_ASYNC_FOR", "SEND")
_CALLS = ("CALL", "PRECALL", "YIELD", "SEND", "GET_AWAITABLE", "IMPORT")
_OPERATORS = ("BINARY_", "COMPARE_OP", "CONTAINS_OP", "INPLACE_", "UNARY_NEG", "UNARY_INV")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR")
