"""Regular expressions that are compiled on first use.

Every run loads about seventy of them and needs only a few, and compiling one takes as long as
loading a module. mypy sees the type of Python's own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class pattern:
        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._made_of = text, flags

        def __getattr__(self, name: str) -> object:
            """Attributes of the compiled pattern, each looked up once."""
            value = getattr(re.compile(*self._made_of), name)
            setattr(self, name, value)
            return value


__all__ = ["pattern"]
