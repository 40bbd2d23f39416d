"""The loop that a line of Python is in, according to its bytecode. A `for` loop ends with its data;
a `while` loop need not end."""

from __future__ import annotations

import dis
import inspect
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, takewhile
from types import CodeType, FrameType

from stall_analyzer.captures.look_records import Loop

REMEMBERED = 256  # functions


def loop_of(frame: FrameType) -> Loop | None:
    """The innermost loop around what the frame is doing."""
    around = [
        (end - begin, jumps, loop)
        for begin, end, jumps, loop in _loops(frame.f_code)
        if begin <= frame.f_lasti <= end
    ]
    if not around:
        return None
    _, jumps, loop = min(around, key=lambda sized: sized[0])
    # Python lets other threads run where a loop jumps back (since 3.11), and where C code releases
    # the interpreter. If a round took a long time, with arrays for example, it would be seen in the
    # middle.
    return replace(loop, is_empty=loop.is_empty and frame.f_lasti in jumps)


def while_loops_around(frame: FrameType) -> list[Loop]:
    """The while loops around what the frame is doing, innermost first."""
    around = [
        (end - begin, loop)
        for begin, end, _, loop in _loops(frame.f_code)
        if begin <= frame.f_lasti <= end and loop.word == "while"
    ]
    return [loop for _, loop in sorted(around, key=lambda sized: sized[0])]


def takes_all_in(frame: FrameType) -> Loop | None:
    """The for loop that is asking for its next element, if only the end of its data can end it."""
    for begin, end, _, loop in _loops(frame.f_code):
        if frame.f_lasti == begin and loop.word == "for":
            return loop if _ends_with_data(frame.f_code, begin, end) else None
    return None


@lru_cache(REMEMBERED)
def _ends_with_data(code: CodeType, begin: int, end: int) -> bool:
    instructions = list(dis.get_instructions(code))
    body = [each for each in instructions if begin <= each.offset <= end]
    return _has_no_end(code, body, dict(_lines(code, instructions)))


def loop_at(code: CodeType, line: int) -> Loop | None:
    """The innermost loop around a line, for a frame of which only the line is known."""
    loops = (loop for *_, loop in _loops(code) if loop.line <= line <= loop.last)
    return min(loops, key=lambda loop: loop.last - loop.line, default=None)


def yields_for_ever(code: CodeType) -> int | None:
    """The line of a loop in a generator that yields and never ends; None if there is none."""
    if not code.co_flags & inspect.CO_GENERATOR:
        return None
    instructions = list(dis.get_instructions(code))
    lines = dict(_lines(code, instructions))
    for begin, back in _jumps_back(instructions).items():
        body = [each for each in instructions if begin <= each.offset <= max(back)]
        yields = any(each.opname == _YIELDS for each in body)
        if body[0].opname not in _ITERATES and yields and _has_no_end(code, body, lines, _STOPS):
            return min(lines[each.offset] for each in body)
    return None


def names_in(code: CodeType, loop: Loop) -> frozenset[str]:
    """The variables of a loop, if it contains any operators."""
    instructions = list(dis.get_instructions(code))
    lines = dict(_lines(code, instructions))
    body = [each for each in instructions if loop.line <= lines[each.offset] <= loop.last]
    if not any(each.opname.startswith(_OPERATORS) for each in body):
        return frozenset()
    loads = (each for each in body if each.opname.startswith(_LOADS))
    return frozenset(name for each in loads for name in _strings(each.argval))


def _strings(names: object) -> tuple[str, ...]:
    """In Python 3.13, one instruction may load two variables."""
    return names if isinstance(names, tuple) else (str(names),)


@lru_cache(REMEMBERED)
def _loops(code: CodeType) -> tuple[tuple[int, int, frozenset[int], Loop], ...]:
    """Where the instructions of each loop begin and end, and where it jumps back."""
    instructions = list(dis.get_instructions(code))
    lines = dict(_lines(code, instructions))
    found = []
    for begin, back in _jumps_back(instructions).items():
        end = max(back)
        body = [each for each in instructions if begin <= each.offset <= end]
        used = [lines[each.offset] for each in body]
        kind = "for" if body[0].opname in _ITERATES else "while"
        is_empty = not any(each.opname.startswith(_CALLS) for each in body)
        has_no_end = kind == "while" and _has_no_end(code, body, lines)
        loop = Loop(kind, min(used), max(used), is_empty, has_no_end)
        found.append((begin, end, frozenset(back), loop))
    return tuple(found)


def _jumps_back(instructions: list[dis.Instruction]) -> dict[int, set[int]]:
    """Jumps backward, as their origins by their target. Each target begins a loop."""
    jumps: dict[int, set[int]] = {}
    for before, each in pairwise([instructions[0], *instructions]):
        if each.opcode in _JUMPS and each.argval <= each.offset:
            # If they run often, Python merges a comparison and the jump after it.
            places = (before, each) if before.opname == _COMPARES else (each,)
            jumps.setdefault(each.argval, set()).update(place.offset for place in places)
    return jumps


def _has_no_end(
    code: CodeType,
    body: list[dis.Instruction],
    lines: dict[int, int],
    leaves: tuple[str, ...] = (),
) -> bool:
    """Whether nothing leads out of it: no `break`, `return` or exception handler, and either no
    condition or one that compares variables that the loop does not change."""
    begin, end = body[0].offset, body[-1].offset
    # The jump out of a for loop when its data ends does not count.
    jumps = [each for each in body if each.opcode in _JUMPS and each.opname not in _ITERATES]
    if any(not begin <= each.argval <= end for each in jumps) or _is_guarded(code, begin, end):
        return False
    if any(each.opname.startswith(leaves or _LEAVES) for each in body):
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
    """Whether an error in it is handled, which may be how it ends. A `with` inside of it does not
    count: it only cleans up. Before Python 3.11, handlers are jumps and found as such."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    instructions = list(dis.get_instructions(code))
    names = [each.opname for each in instructions]
    places = {each.offset: n for n, each in enumerate(instructions)}
    takes_data = names[places[begin]] in _ITERATES  # then it ends without an error
    for entry in entries:
        if entry.start <= end and begin < entry.end:
            handler = names[places[entry.target] :][:2]
            tidies = any(name in _TIDIES for name in handler)
            if not tidies or (entry.start < begin and _STOPPED not in handler and not takes_data):
                return True
    return False


def _lines(code: CodeType, instructions: list[dis.Instruction]) -> list[tuple[int, int]]:
    starts = [(start, line) for start, line in dis.findlinestarts(code) if line is not None]
    lines, now = [], code.co_firstlineno
    for each in instructions:
        while starts and starts[0][0] <= each.offset:
            now = starts.pop(0)[1]
        lines.append((each.offset, now))
    return lines


_COMPARES = "COMPARE_OP"
_YIELDS = "YIELD_VALUE"
# Handlers that only clean up: since Python 3.12, the one in generators that turns StopIteration
# into an error; and those of `with`.
_STOPPED = "CALL_INTRINSIC_1"
_TIDIES = (_STOPPED, "WITH_EXCEPT_START", "COPY")
_STOPS = ("RETURN_VALUE", "RETURN_CONST", "RAISE", "SETUP_")
_LEAVES = ("RETURN", "RAISE", "YIELD", "SEND", "SETUP_")
_PLAIN = ("LOAD_FAST", "LOAD_CONST", _COMPARES, "CACHE", "EXTENDED_ARG", "NOP", "TO_BOOL")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ITERATES = ("FOR_ITER", "END_ASYNC_FOR", "SEND")
_CALLS = ("CALL", "PRECALL", "YIELD", "SEND", "GET_AWAITABLE", "IMPORT")
_OPERATORS = ("BINARY_", "COMPARE_OP", "CONTAINS_OP", "INPLACE_", "UNARY_NEG", "UNARY_INV")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR")
