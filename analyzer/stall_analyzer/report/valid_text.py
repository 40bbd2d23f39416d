"""Text that every JSON reader accepts: file names need not be UTF-8, and JSON may contain half
characters. Python writes both as escapes that DuckDB and others refuse."""

from __future__ import annotations

from typing import Any


def valid_text(data: Any) -> Any:
    """The same data; what is no character is written out, as in `run\\udcff`."""
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {valid_text(key): valid_text(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [valid_text(item) for item in data]
    return data


def may_be_invalid(json_text: str) -> bool:
    """Whether JSON may contain half a character: a quick check, since it rarely does."""
    return "\\ud" in json_text
