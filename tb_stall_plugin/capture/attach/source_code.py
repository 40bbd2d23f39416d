"""The loop that a frame of another process is in, found by compiling its source file again, because
the bytecode is in that process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import CodeType

from stall_analyzer.captures.look_records import Loop
from tb_stall_plugin.capture.attach.py_spy import PythonFrame
from tb_stall_plugin.capture.process.loops import loop_at, names_in

LARGEST_BYTES = 1 << 20
REMEMBERED = 64  # files
CLOCKS_S = 1.0  # how much the clocks of process starts and of file times may differ


def loop_around(frame: PythonFrame, process: Path, began_unix_s: float) -> Loop | None:
    """None if there is no loop, or if the source has changed since the process began."""
    base = process / "root" if frame.path.startswith("/") else process / "cwd"
    path = base / frame.path.lstrip("/")
    try:
        about = path.stat()
        if about.st_size > LARGEST_BYTES or about.st_mtime > began_unix_s + CLOCKS_S:
            return None
        code = _code_at(path, frame)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    loop = loop_at(code, frame.line) if code is not None else None
    if code is None or loop is None:
        return None
    # Operators on arrays may take a long time; on plain numbers, they take almost none.
    return replace(loop, is_empty=loop.is_empty and names_in(code, loop) <= frame.numbers)


def _code_at(path: Path, frame: PythonFrame) -> CodeType | None:
    """The innermost code of that name around the line."""
    name = frame.function.rpartition(".")[2]
    around = [c for c in _codes(path) if c.co_name == name and frame.line in _lines(c)]
    return max(around, key=lambda code: code.co_firstlineno, default=None)


@lru_cache(REMEMBERED)
def _codes(path: Path) -> tuple[CodeType, ...]:
    return tuple(_all(compile(path.read_bytes(), str(path), "exec", dont_inherit=True)))


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all(each)


def _lines(code: CodeType) -> set[int]:
    return {line for *_, line in code.co_lines() if line is not None}
