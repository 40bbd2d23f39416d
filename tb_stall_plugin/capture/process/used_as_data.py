"""Whether what a script waits for becomes training data, according to its source.

Before `fit`, a script does all kinds of things: it asks a question, loads weights, prepares its
data. The variables that the unfinished line would assign or fill are followed to calls that take
data.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

# Functions of Keras and TensorFlow whose arguments are data.
TAKES_DATA = frozenset(
    {"fit", "evaluate", "predict", "adapt", "train_on_batch", "test_on_batch", "predict_on_batch",
     "from_tensor_slices", "from_tensors", "from_generator", "from_list"}
)  # fmt: skip
DEEPEST = 4  # how many calls of the script's own functions are followed into each other
MOST_FILES = 16

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function


def becomes_data(lines: Iterable[tuple[str, int]]) -> bool:
    """`lines`: the files and lines of the script that a thread is in, outermost first."""
    with suppress(SyntaxError, ValueError, RecursionError):
        return any(_goes_into_training(path, line) for path, line in lines)
    return False


def _goes_into_training(path: str, line: int) -> bool:
    tree = tree_of(path)
    found = _innermost(tree, line) if tree is not None else None
    if tree is None or found is None:
        return False
    scope, statement = found
    names = _made_by(statement)
    functions = {each.name: each for each in ast.walk(tree) if isinstance(each, Function)}
    return _takes_data(statement) or _flows(scope, names, statement.lineno, functions, DEEPEST)


@lru_cache(MOST_FILES)
def tree_of(path: str) -> ast.Module | None:
    text = "".join(linecache.getlines(path))
    return ast.parse(text) if text else None


def _innermost(tree: ast.Module, line: int) -> tuple[Scope, ast.stmt] | None:
    """The smallest statement around a line, and the function that it is in."""
    scope: Scope = tree
    found: ast.stmt | None = None
    inside: Sequence[ast.AST] = tree.body
    while inside:
        around = [s for s in inside if isinstance(s, ast.stmt) and _covers(s, line)]
        if not around:
            break
        found = around[-1]
        scope = found if isinstance(found, Function) else scope
        inside = [each for each in _statements(found) if each is not found]
    return (scope, found) if found is not None and found is not scope else None


def _statements(statement: ast.stmt) -> list[ast.AST]:
    parts = [p for name in ("body", "orelse", "finalbody") for p in getattr(statement, name, ())]
    return [*parts, *(p for h in getattr(statement, "handlers", ()) for p in h.body)]


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _made_by(statement: ast.stmt) -> set[str]:
    """The names that it assigns, and the objects whose methods it calls, which may fill them."""
    targets: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        targets += statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign | ast.For):
        targets.append(statement.target)
    elif isinstance(statement, ast.With):
        targets += [item.optional_vars for item in statement.items if item.optional_vars]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        targets += [called.value] if isinstance(called, ast.Attribute) else []
    return {name for target in targets for name in _names(target)}


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _takes_data(node: ast.AST) -> bool:
    """Whether the line itself passes something to a call that takes data."""
    return any(
        isinstance(each, ast.Call) and _called(each) in TAKES_DATA and (each.args or each.keywords)
        for each in ast.walk(node)
    )


def _flows(
    scope: Scope, names: set[str], after: int, functions: dict[str, Function], deepest: int
) -> bool:
    """Whether one of these values, or something made from it, is passed to a call that takes
    data."""
    known = set(names)
    while known:
        before = len(known)
        for node in _own(scope):
            if isinstance(node, ast.Call) and node.lineno >= after:
                given = (*node.args, *(keyword.value for keyword in node.keywords))
                passed = any(_names(each) & known for each in given)
                if passed and (_called(node) in TAKES_DATA or _is_traced(node, functions)):
                    return True
                inner = functions.get(_called(node))
                if passed and inner is not None and deepest and inner is not scope:
                    parameters = _parameters(inner, node, known)
                    if _flows(inner, parameters, inner.lineno, functions, deepest - 1):
                        return True
            if isinstance(node, ast.stmt) and node.lineno >= after and _read_by(node) & known:
                known |= _made_by(node)
            if isinstance(node, Function) and _names(node) & known:
                known.add(node.name)  # a function that uses such a value from outside
        if len(known) == before:
            return False
    return False


def _own(scope: Scope) -> Iterable[ast.AST]:
    """All nodes, except for those inside of its functions and classes."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _read_by(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.For):
        return _names(statement.iter)
    if isinstance(statement, ast.With):
        return {name for item in statement.items for name in _names(item.context_expr)}
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
        return _names(statement.value) if statement.value is not None else set()
    return set()


def _called(call: ast.Call) -> str:
    """`fit` of `model.fit(…)`."""
    function = call.func
    return str(getattr(function, "attr", None) or getattr(function, "id", ""))


def _is_traced(call: ast.Call, functions: dict[str, Function]) -> bool:
    """Whether it calls the script's own step, which becomes a graph."""
    function = functions.get(_called(call))
    decorators = function.decorator_list if function is not None else []
    return any("function" in ast.unparse(each).split("(")[0] for each in decorators)


def _parameters(function: Function, call: ast.Call, known: set[str]) -> set[str]:
    """The parameters that get one of these values; `self` does not count."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    by_place = {
        name for name, given in zip(names, call.args, strict=False) if _names(given) & known
    }
    return by_place | {k.arg for k in call.keywords if k.arg and _names(k.value) & known}
