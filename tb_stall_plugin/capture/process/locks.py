"""Which of Python's locks each thread holds, and which one it waits for, as far as that is certain.

A Lock does not know who holds it, but an RLock does, and a thread's code tells more: whoever is
inside `with lock:`, or inside a `try` between `lock.acquire()` and `lock.release()`, holds it. A
thread waits for the lock that its current instruction is about. Nothing is said about a lock that
was merely acquired, since anybody may have released it; nor before Python 3.11, whose instructions
do not say where in a line they are. Used only on a process in which nothing finishes.
"""

from __future__ import annotations

import ast
import inspect
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any, NamedTuple

from stall_analyzer.captures.look_records import NamedLock
from stall_analyzer.captures.stack_frames import Frame
from tb_stall_plugin.capture.process.current_frames import variables_of
from tb_stall_plugin.capture.process.used_as_data import tree_of

LOCK, RLOCK = type(threading.Lock()), type(threading.RLock())
OWNER = re.compile(r"owner=(\d+)")
ACQUIRE, ENTER, RELEASE = "acquire", "__enter__", "release"
# What runs in its own frame is not inside the code that surrounds it in the source.
SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
    ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp,
)  # fmt: skip
Code = ast.stmt | ast.expr


class Locks(NamedTuple):
    """The locks of one thread."""

    waits_for: NamedLock | None = None
    holds: tuple[NamedLock, ...] = ()


class _Seen(NamedTuple):
    lock: Any
    name: str  # "self.lock", as in the code

    @property
    def named(self) -> NamedLock:
        return NamedLock(id(self.lock), self.name)

    @property
    def owner(self) -> int | None:
        """The thread that an RLock says holds it."""
        found = OWNER.search(repr(self.lock)) if isinstance(self.lock, RLOCK) else None
        return int(found[1]) if found is not None else None


class _Place(NamedTuple):
    """Where code begins and ends in its file, by lines and columns."""

    begin: tuple[int, int]
    end: tuple[int, int]


class _Code(NamedTuple):
    """The locks that a frame's code has entered, and the one that it is entering."""

    entered: tuple[ast.expr, ...] = ()  # by the statements around the current instruction
    entering: ast.expr | None = None  # or acquiring


def locks_by_thread(stacks: Mapping[int, Sequence[FrameType]]) -> dict[int, Locks]:
    """`stacks`: frames by thread, innermost first."""
    if not hasattr(CodeType, "co_positions"):
        return {}
    waits, entered = {}, {}
    for ident, stack in stacks.items():
        with suppress(SyntaxError, ValueError, RecursionError):
            entered[ident] = [*_entered(stack)]
            waits[ident] = _waited_for(stack)
    known = [seen for seen in waits.values() if seen is not None]
    known += [seen for each in entered.values() for seen in each]
    found = {}
    for ident in stacks:
        wait, mine = waits.get(ident), entered.get(ident, ())
        held = [seen for seen in mine if isinstance(seen.lock, LOCK) and seen.lock.locked()]
        held += [seen for seen in (*mine, *known) if seen.owner == ident]
        by_lock = {id(seen.lock): seen.named for seen in reversed(held)}
        found[ident] = Locks(wait.named if wait is not None else None, tuple(by_lock.values()))
    return found


def _entered(stack: Sequence[FrameType]) -> Iterator[_Seen]:
    for frame in stack:
        for lock in _code_of(frame).entered if _is_users(frame) else ():
            if (seen := _resolved(frame, lock)) is not None:
                yield seen


def _waited_for(stack: Sequence[FrameType]) -> _Seen | None:
    """What the innermost frame waits for, apart from frames of a Condition."""
    inner = next((n for n, f in enumerate(stack) if not _acquires(f)), len(stack))
    frame = stack[inner] if inner < len(stack) else None
    if frame is None or not _is_users(frame):
        return None
    lock = _code_of(frame).entering
    return _resolved(frame, lock) if lock is not None else None


def _acquires(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_filename == threading.__file__ and code.co_name in (ACQUIRE, ENTER)


def _is_users(frame: FrameType) -> bool:
    return Frame(frame.f_code.co_filename, 0, "").is_users


def _resolved(frame: FrameType, expression: ast.expr) -> _Seen | None:
    """The lock that a name or an attribute stands for, found without running any code."""
    attributes, root = [], expression
    while isinstance(root, ast.Attribute):
        attributes.append(root.attr)
        root = root.value
    if not isinstance(root, ast.Name):
        return None
    value = variables_of(frame, (root.id,)).get(root.id)
    for attribute in reversed(attributes):
        value = inspect.getattr_static(value, attribute, None)
    if isinstance(value, threading.Condition):
        value = vars(value).get("_lock")
        value = value if isinstance(value, RLOCK) else None  # it may wait without the lock
    return _Seen(value, ast.unparse(expression)) if isinstance(value, (LOCK, RLOCK)) else None


# ---------------------------------------------------------------- code


def _code_of(frame: FrameType) -> _Code:
    tree, place = tree_of(frame.f_code.co_filename), _place_now(frame)
    path = _path(tree, place) if tree is not None and place is not None else []
    entered: list[ast.expr] = []
    entering = None
    for (before, node), (_, inner) in pairwise([*path, (None, None)]):
        if isinstance(node, ast.With):
            locks = [item.context_expr for item in node.items]
            at = len(locks) if inner in node.body else _item_at(frame, locks, inner)
            entered += locks[:at]
            entering = locks[at] if at < len(locks) and inner in (None, locks[at]) else None
        elif isinstance(node, ast.Try) and inner in node.body:
            entered += _acquired(before, node)
        elif isinstance(node, ast.Call) and inner is None:
            entering = _lock_of_call(node, ACQUIRE)
    return _Code(tuple(entered), entering)


def _place_now(frame: FrameType) -> _Place | None:
    places = [*frame.f_code.co_positions()]
    return _place(*places[frame.f_lasti // 2])


def _place(
    line: int | None, last: int | None, column: int | None, end: int | None
) -> _Place | None:
    if line is None or last is None or column is None or end is None:
        return None
    return _Place((line, column), (last, end))


def _place_of(node: Code) -> _Place:
    place = _place(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
    assert place is not None, "parsed code has places"
    return place


def _path(tree: ast.AST, place: _Place) -> list[tuple[Code | None, Code]]:
    """The statements and expressions around a place, from its function inward, each with the one
    before it."""
    path: list[tuple[Code | None, Code]] = []
    node: ast.AST = tree
    while (found := _part_around(node, place)) is not None:
        node = found[1]
        if isinstance(node, SCOPES) and _place_of(node) != place:
            path.clear()
        path.append(found)
    return path


def _part_around(node: ast.AST, place: _Place) -> tuple[Code | None, Code] | None:
    before = None
    for part in _parts(node):
        around = _place_of(part)
        if around.begin <= place.begin and place.end <= around.end:
            return before, part
        before = part
    return None


def _parts(node: ast.AST) -> Iterator[Code]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.expr):
            yield child
        else:
            yield from _parts(child)


def _item_at(frame: FrameType, locks: Sequence[ast.expr], inner: ast.AST | None) -> int:
    """Which of the locks a `with` is about to enter: the last one that was loaded tells."""
    if inner in locks:
        return locks.index(inner)
    places = [_place(*each) for each in frame.f_code.co_positions()]
    by_place = {_place_of(lock): n for n, lock in enumerate(locks)}
    before = reversed(places[: frame.f_lasti // 2])
    return next((by_place[place] for place in before if place in by_place), 0)


def _acquired(before: ast.AST | None, node: ast.Try) -> list[ast.expr]:
    """`lock.acquire()` comes before the `try`, and `lock.release()` in its `finally`."""
    call = getattr(before, "value", None)
    lock = _lock_of_call(call, ACQUIRE)
    if lock is None or call is None or call.args or call.keywords:  # a timeout may have passed
        return []
    after = (_lock_of_call(getattr(each, "value", None), RELEASE) for each in node.finalbody)
    is_released = any(each is not None and ast.dump(each) == ast.dump(lock) for each in after)
    return [lock] if is_released else []


def _lock_of_call(call: ast.AST | None, method: str) -> ast.expr | None:
    """`lock` of `lock.acquire()`."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call.func.value if call.func.attr == method else None
