"""What is done when Python takes its modules down: all exit handlers have come to their end then.

It has a module of its own: Python clears only modules that are still there. What it does can use
nothing of any module.
"""

from __future__ import annotations

from collections.abc import Callable


class LastWord:
    write: Callable[[], object] | None = None

    def __del__(self) -> None:
        try:
            if self.write is not None:
                self.write()
        except:  # noqa: E722 (nobody is left to be told)
            pass


last_word = LastWord()
