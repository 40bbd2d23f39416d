"""What a while loop's condition is computed from, if each round recomputes all of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from tb_stall_plugin.capture.process.used_as_data import tree_of

# The result of these depends on nothing but their arguments.
PURE = frozenset({"abs", "bool", "float", "len", "max", "min", "round", "sum", "any", "all"})
PURE_MODULES = frozenset({"np", "numpy", "math", "tf", "tensorflow", "keras", "ops"})
PURE_METHODS = frozenset({"all", "any", "item", "max", "mean", "min", "numpy", "sum"})
IMPURE = (ast.NamedExpr, ast.Await, ast.Yield, ast.Subscript, ast.Attribute)
REMEMBERED = 64


class Conditions(NamedTuple):
    """Variables that decide whether a loop ends."""

    fresh: frozenset[str] = frozenset()  # every round assigns them, whatever happens in it
    held: frozenset[str] = frozenset()  # no round assigns them


@lru_cache(REMEMBERED)
def conditions_of(path: str, line: int, last: int) -> Conditions | None:
    """None if a way out of the loop depends on anything else."""
    with suppress(SyntaxError, ValueError, RecursionError):
        tree = tree_of(path)
        loops = (n for n in ast.walk(tree or ast.Module([], [])) if isinstance(n, ast.While))
        around = [n for n in loops if n.lineno <= line and last <= (n.end_lineno or 0)]
        return _conditions(max(around, key=lambda loop: loop.lineno)) if around else None
    return None


def _conditions(loop: ast.While) -> Conditions | None:
    ways = [*_ways_out(loop.body, [], in_loop=True)]
    if not (isinstance(loop.test, ast.Constant) and loop.test.value):
        ways.append([loop.test])
    fresh = {name for statement in loop.body for name in _assigned(statement)}
    stored = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and _is_stored(n)}
    found: set[str] = set()
    for tests in ways:
        # If several conditions must all hold to get out, one that never holds is enough to stay in.
        names = (_pure_names(test) for test in tests)
        telling = (n for n in names if n is not None and n & fresh and not (n & stored) - fresh)
        best = next(telling, None)
        if best is None:
            return None
        found |= best
    return Conditions(frozenset(found & fresh), frozenset(found - fresh)) if found else None


def _is_stored(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _ways_out(
    body: list[ast.stmt], conditions: list[ast.expr], in_loop: bool
) -> Iterator[list[ast.expr]]:
    """The conditions of each `break`, `return` and `raise`; empty if they are not known."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Raise) or (
            in_loop and isinstance(statement, ast.Break)
        ):
            yield conditions
        elif isinstance(statement, ast.If):
            yield from _ways_out(statement.body, [*conditions, statement.test], in_loop)
            yield from _ways_out(statement.orelse, [*conditions, statement.test], in_loop)
        elif isinstance(statement, ast.For | ast.While):
            inner = [*_ways_out([*statement.body, *statement.orelse], [], in_loop=False)]
            yield from ([] for _ in inner)
        elif isinstance(statement, ast.With):
            yield from _ways_out(statement.body, conditions, in_loop)
        elif isinstance(statement, ast.Try):
            parts = [*statement.body, *statement.orelse, *statement.finalbody]
            handled = [part for handler in statement.handlers for part in handler.body]
            yield from ([] for _ in _ways_out([*parts, *handled], [], in_loop))


def _assigned(statement: ast.stmt) -> set[str]:
    """The plain names that are assigned whenever the statement is run."""
    if isinstance(statement, ast.With):
        return {name for inner in statement.body for name in _assigned(inner)}
    if isinstance(statement, ast.Assign):
        targets = [part for each in statement.targets for part in _parts(each)]
        return {each.id for each in targets if isinstance(each, ast.Name)}
    return set()


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _pure_names(test: ast.expr) -> set[str] | None:
    """The names that the test depends on; None if it may depend on anything else."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    called = {id(part) for call in calls for part in ast.walk(call.func)}
    if not all(_is_pure(call.func) for call in calls):
        return None
    if any(isinstance(node, IMPURE) and id(node) not in called for node in ast.walk(test)):
        return None
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return names - PURE - PURE_MODULES


def _is_pure(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in PURE
    words = ast.unparse(function).split(".")
    if words[0] in PURE_MODULES:
        return "random" not in words
    return len(words) == 2 and words[1] in PURE_METHODS  # a method of an array
