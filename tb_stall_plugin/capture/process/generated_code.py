"""Finds the user's line from which AutoGraph generated a line of code.

AutoGraph keeps what it has generated, with a map from its lines to the user's. Looking them up does
not import TensorFlow: if the program has not imported it either, nothing has been generated.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

GENERATED = "__autograph_generated_file"
API = "tensorflow.python.autograph.impl.api"
MOST_FILES = 1000  # that are remembered

Lines = Mapping[tuple[str, int], Any]
_maps: dict[str, Lines] = {}  # by the file that AutoGraph generated


def users_line(code: CodeType, line: int) -> str | None:
    """`path:line function` as the user wrote it; None if it is not known. The map knows only where
    statements begin; a line inside a statement belongs to the last one that began before it."""
    return _first_of(code, range(line, code.co_firstlineno - 1, -1))


def users_function(code: CodeType) -> str | None:
    """The same for the line where a function begins, which may come after a decorator."""
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return _first_of(code, range(code.co_firstlineno, last + 1)) or users_line(
        code, code.co_firstlineno
    )


def _first_of(code: CodeType, numbers: range) -> str | None:
    path = code.co_filename
    lines = _map_of(path)
    origin = next((lines[path, n] for n in numbers if (path, n) in lines), None)
    if origin is None:
        return None
    return f"{origin.loc.filename}:{origin.loc.lineno} {origin.function_name or code.co_name}"


def _map_of(path: str) -> Lines:
    if path not in _maps:
        if len(_maps) >= MOST_FILES:
            _maps.clear()
        try:
            _maps.update(_made())
        except Exception:  # another thread generates code, or this TensorFlow keeps it elsewhere
            return {}
        _maps.setdefault(path, {})
    return _maps[path]


def _made() -> dict[str, Lines]:
    transpiler = getattr(sys.modules.get(API), "_TRANSPILER", None)
    if transpiler is None:
        return {}
    by_code = [*transpiler._cache._cache.values()]
    made = [factory for factories in by_code for factory in [*factories.values()]]
    return {factory.module.__file__: factory.source_map for factory in made}
