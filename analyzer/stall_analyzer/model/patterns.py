"""Regular expressions that are compiled when they are first used.

Every run loads some seventy of them and needs only a few, and compiling one takes as long as
loading a module. mypy sees Python's own.
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
            """As the compiled one has it, which it is taken from once."""
            value = getattr(re.compile(*self._made_of), name)
            setattr(self, name, value)
            return value


__all__ = ["pattern"]
