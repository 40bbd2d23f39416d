"""Lines of the user's that run as code that AutoGraph has made of them.

AutoGraph keeps what it has made, each with a map from its lines to the user's. TensorFlow itself is
not needed to look them up: where it has not been imported, it has made nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

GENERATED = "__autograph_generated_file"
API = "tensorflow.python.autograph.impl.api"
MOST_FILES = 1000  # remembered

Lines = Mapping[tuple[str, int], Any]
_maps: dict[str, Lines] = {}  # by the file that AutoGraph wrote


def users_line(code: CodeType, line: int) -> str | None:
    """`path:line function` as the user wrote it; None where that cannot be told. The map knows
    statements; a line inside one belongs to the last that began before it."""
    return _first_of(code, range(line, code.co_firstlineno - 1, -1))


def users_function(code: CodeType) -> str | None:
    """The same, of the line at which a function begins: a decorator may stand before it."""
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
        except Exception:  # another thread makes more, or it is another version of TensorFlow
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
