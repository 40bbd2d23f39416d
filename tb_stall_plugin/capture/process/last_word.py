"""Acts when Python takes its modules down: by then, all exit handlers have returned.

This is a separate module because Python clears only modules that still exist. What is called here
can use nothing from any module.
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
